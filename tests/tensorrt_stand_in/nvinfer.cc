// A library with the entry points that identity's build.cc opens. Its "plan" is a text that says what was asked for.
#include "NvInfer.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace trt = nvinfer1;

namespace {

std::string spelled(trt::Dims const& dims) {
    std::ostringstream text;
    for (int32_t index = 0; index < dims.nbDims; ++index) {
        text << (index == 0 ? "" : "x") << dims.d[index];
    }
    return text.str();
}

class Memory : public trt::IHostMemory {
public:
    explicit Memory(std::string text) : mText(std::move(text)) {}
    void* data() const noexcept override { return const_cast<char*>(mText.data()); }
    std::size_t size() const noexcept override { return mText.size(); }

private:
    std::string mText;
};

class Tensor : public trt::ITensor {
public:
    Tensor(char const* name, trt::DataType type, trt::Dims const& dims) : mName(name), mType(type), mDims(dims) {}
    void setName(char const* name) noexcept override { mName = name; }
    trt::DataType getType() const noexcept override { return mType; }
    trt::Dims getDimensions() const noexcept override { return mDims; }
    std::string line() const { return mName + " " + std::to_string(static_cast<int>(mType)) + " " + spelled(mDims) + "\n"; }

private:
    std::string mName;
    trt::DataType mType;
    trt::Dims mDims;
};

class Identity : public trt::IIdentityLayer {
public:
    explicit Identity(trt::ITensor const& input) : mOutput(new Tensor("?", input.getType(), input.getDimensions())) {}
    trt::ITensor* getOutput(int32_t) const noexcept override { return mOutput.get(); }

private:
    std::unique_ptr<Tensor> mOutput;
};

class Network : public trt::INetworkDefinition {
public:
    explicit Network(uint32_t flags) : mFlags(flags) {}
    trt::ITensor* addInput(char const* name, trt::DataType type, trt::Dims const& dims) noexcept override {
        mInput.reset(new Tensor(name, type, dims));
        return mInput.get();
    }
    trt::IIdentityLayer* addIdentity(trt::ITensor& input) noexcept override {
        mLayer.reset(new Identity(input));
        return mLayer.get();
    }
    void markOutput(trt::ITensor& tensor) noexcept override { mOutput = static_cast<Tensor*>(&tensor); }
    std::string text() const { return "flags " + std::to_string(mFlags) + "\n" + mInput->line() + mOutput->line(); }

private:
    uint32_t mFlags;
    std::unique_ptr<Tensor> mInput;
    std::unique_ptr<Identity> mLayer;
    Tensor* mOutput = nullptr;
};

class Profile : public trt::IOptimizationProfile {
public:
    bool setDimensions(char const* name, trt::OptProfileSelector select, trt::Dims const& dims) noexcept override {
        mText += "profile " + std::string(name) + " " + std::to_string(static_cast<int>(select)) + " " + spelled(dims) + "\n";
        return true;
    }
    std::string mText;
};

class Config : public trt::IBuilderConfig {
public:
    int32_t addOptimizationProfile(trt::IOptimizationProfile const* profile) noexcept override {
        mText += static_cast<Profile const*>(profile)->mText;
        return 0;
    }
    std::string mText;
};

class Builder : public trt::IBuilder {
public:
    trt::INetworkDefinition* createNetworkV2(uint32_t flags) noexcept override { return new Network(flags); }
    trt::IBuilderConfig* createBuilderConfig() noexcept override { return new Config; }
    trt::IOptimizationProfile* createOptimizationProfile() noexcept override {
        mProfiles.emplace_back(new Profile);
        return mProfiles.back().get();
    }
    trt::IHostMemory* buildSerializedNetwork(trt::INetworkDefinition& network, trt::IBuilderConfig& config) noexcept override {
        return new Memory(static_cast<Network&>(network).text() + static_cast<Config&>(config).mText);
    }

private:
    std::vector<std::unique_ptr<Profile>> mProfiles;
};

} // namespace

extern "C" {
int32_t getInferLibVersion() noexcept { return 101303; }
void* createInferBuilder_INTERNAL(void*, int32_t) noexcept { return static_cast<trt::IBuilder*>(new Builder); }
}
