// The part of TensorRT's C++ API that identity's build.cc uses, declared anew for the tests: a compiler checks build.cc
// against it, and nvinfer.cc beside it implements it. It is no TensorRT: nothing built with it can be served.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 13
#define NV_TENSORRT_PATCH 3

namespace nvinfer1 {

enum class DataType : int32_t { kFLOAT, kHALF, kINT8, kINT32, kBOOL, kUINT8, kFP8, kBF16, kINT64, kINT4 };
enum class OptProfileSelector : int32_t { kMIN, kOPT, kMAX };
enum class NetworkDefinitionCreationFlag : int32_t { kEXPLICIT_BATCH, kSTRONGLY_TYPED };

class Dims64 {
public:
    static constexpr int32_t MAX_DIMS{8};
    int32_t nbDims;
    int64_t d[MAX_DIMS];
};
using Dims = Dims64;

class ILogger {
public:
    enum class Severity : int32_t { kINTERNAL_ERROR, kERROR, kWARNING, kINFO, kVERBOSE };
    virtual void log(Severity severity, char const* msg) noexcept = 0;
    virtual ~ILogger() = default;
};

class INoCopy {
public:
    virtual ~INoCopy() noexcept = default;
};

class IHostMemory : public INoCopy {
public:
    virtual void* data() const noexcept = 0;
    virtual std::size_t size() const noexcept = 0;
};

class ITensor : public INoCopy {
public:
    virtual void setName(char const* name) noexcept = 0;
    virtual DataType getType() const noexcept = 0;
    virtual Dims getDimensions() const noexcept = 0;
};

class IIdentityLayer : public INoCopy {
public:
    virtual ITensor* getOutput(int32_t index) const noexcept = 0;
};

class INetworkDefinition : public INoCopy {
public:
    virtual ITensor* addInput(char const* name, DataType type, Dims const& dimensions) noexcept = 0;
    virtual IIdentityLayer* addIdentity(ITensor& input) noexcept = 0;
    virtual void markOutput(ITensor& tensor) noexcept = 0;
};

class IOptimizationProfile : public INoCopy {
public:
    virtual bool setDimensions(char const* inputName, OptProfileSelector select, Dims const& dims) noexcept = 0;
};

class IBuilderConfig : public INoCopy {
public:
    virtual int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept = 0;
};

class IBuilder : public INoCopy {
public:
    virtual INetworkDefinition* createNetworkV2(uint32_t flags) noexcept = 0;
    virtual IBuilderConfig* createBuilderConfig() noexcept = 0;
    virtual IOptimizationProfile* createOptimizationProfile() noexcept = 0;
    virtual IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept = 0;
};

class ICudaEngine : public INoCopy {
public:
    virtual int32_t getNbIOTensors() const noexcept = 0;
    virtual char const* getIOTensorName(int32_t index) const noexcept = 0;
    virtual DataType getTensorDataType(char const* tensorName) const noexcept = 0;
    virtual Dims getTensorShape(char const* tensorName) const noexcept = 0;
};

class IRuntime : public INoCopy {
public:
    virtual ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept = 0;
};

} // namespace nvinfer1
