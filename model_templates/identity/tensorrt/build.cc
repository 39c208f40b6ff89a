// Builds the weight-free identity engine with TensorRT's C++ API: the twin of build.py, for a server's own installation of
// TensorRT that has headers, a library and a compiler, but no Python module.
//
// Usage: build identify
//        build build OUT datatype=FP32 dims=16,16 max_batch_size=0
//
// The last line of the output is JSON, as build.py's functions give it; anything else is for people. The library is opened
// by name, so that compiling needs the headers alone: where Debian's packages, NVIDIA's images and its archives put them.
// flags: -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu -I/usr/local/tensorrt/include
// flags: -I/opt/tensorrt/include -I/usr/src/tensorrt/include -I/usr/local/cuda/include -Wno-deprecated-declarations -ldl
//
// Source: TensorRT C++ API, headers of TensorRT 10 and 11; CUDA driver API for the GPU's name.

#include <NvInfer.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define TEXT_OF(token) #token
#define TEXT(macro) TEXT_OF(macro)
#ifndef TENSORRT_LIBRARY
#define TENSORRT_LIBRARY "libnvinfer.so." TEXT(NV_TENSORRT_MAJOR)
#endif

namespace trt = nvinfer1;

namespace {

// An open dimension is built for sizes from 1 to this; requests have up to 8.
constexpr int64_t kLargestOpenDim = 64;

struct Datatype {
    char const* inProtocol;
    trt::DataType inTensorRt;
    char const* told;
};

constexpr Datatype kDatatypes[] = {
    {"BF16", trt::DataType::kBF16, "BF16"},    {"BOOL", trt::DataType::kBOOL, "BOOL"},
    {"FP16", trt::DataType::kHALF, "HALF"},    {"FP32", trt::DataType::kFLOAT, "FLOAT"},
    {"INT32", trt::DataType::kINT32, "INT32"}, {"INT64", trt::DataType::kINT64, "INT64"},
    {"INT8", trt::DataType::kINT8, "INT8"},    {"UINT8", trt::DataType::kUINT8, "UINT8"},
};

using Parameters = std::map<std::string, std::string>;
using Shape = std::vector<int64_t>;

class Logger : public trt::ILogger {
public:
    void log(Severity severity, char const* message) noexcept override {
        if (severity <= Severity::kINFO) {
            std::cerr << message << "\n";
        }
    }
};

// --- the library, opened by name --------------------------------------------------------------------

template <typename Function>
Function find(char const* name) {
    static void* const library = dlopen(TENSORRT_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        throw std::runtime_error(dlerror());
    }
    void* const found = dlsym(library, name);
    if (found == nullptr) {
        throw std::runtime_error(std::string(TENSORRT_LIBRARY) + " has no " + name);
    }
    return reinterpret_cast<Function>(found);
}

template <typename Made>
std::unique_ptr<Made> make(char const* name, trt::ILogger& logger) {
    int32_t const version = NV_TENSORRT_MAJOR * 10000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;
    auto const function = find<void* (*)(void*, int32_t)>(name);
    std::unique_ptr<Made> made(static_cast<Made*>(function(&logger, version)));
    if (!made) {
        throw std::runtime_error(std::string(name) + " gave nothing; its messages are above");
    }
    return made;
}

std::string version() {
    int32_t const number = find<int32_t (*)()>("getInferLibVersion")();
    std::ostringstream text;
    text << number / 10000 << "." << number % 10000 / 100 << "." << number % 100;
    std::ostringstream headers;
    headers << NV_TENSORRT_MAJOR << "." << NV_TENSORRT_MINOR << "." << NV_TENSORRT_PATCH;
    if (text.str() != headers.str()) {
        throw std::runtime_error("the headers are of TensorRT " + headers.str() + ", the library is " + text.str());
    }
    return text.str();
}

// Name and compute capability of the first GPU that CUDA sees, or "cpu"; makes no CUDA context.
std::string device() {
    constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76; // CUdevice_attribute
    void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == nullptr) {
        return "cpu";
    }
    auto const init = reinterpret_cast<int (*)(unsigned)>(dlsym(cuda, "cuInit"));
    auto const get = reinterpret_cast<int (*)(int*, int)>(dlsym(cuda, "cuDeviceGet"));
    auto const getName = reinterpret_cast<int (*)(char*, int, int)>(dlsym(cuda, "cuDeviceGetName"));
    auto const getAttribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(cuda, "cuDeviceGetAttribute"));
    int handle = 0, major = 0, minor = 0;
    char name[256] = "";
    if (!init || !get || !getName || !getAttribute || init(0) != 0 || get(&handle, 0) != 0) {
        return "cpu";
    }
    getName(name, sizeof name, handle);
    getAttribute(&major, kComputeCapabilityMajor, handle);
    getAttribute(&minor, kComputeCapabilityMinor, handle);
    return std::string(name) + " " + std::to_string(major) + "." + std::to_string(minor);
}

// --- what it is told and tells ----------------------------------------------------------------------

Parameters readParameters(int count, char** words) {
    Parameters parameters;
    for (int index = 0; index < count; ++index) {
        std::string const word = words[index];
        auto const equals = word.find('=');
        if (equals == std::string::npos) {
            throw std::runtime_error("found " + word + ", expected NAME=VALUE");
        }
        parameters[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return parameters;
}

Shape readShape(std::string const& text) {
    Shape shape;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        shape.push_back(std::stoll(word));
    }
    return shape;
}

trt::DataType readDatatype(std::string const& name) {
    std::string known;
    for (Datatype const& one : kDatatypes) {
        if (name == one.inProtocol) {
            return one.inTensorRt;
        }
        known += std::string(known.empty() ? "" : ", ") + one.inProtocol;
    }
    throw std::runtime_error("TensorRT has no datatype " + name + "; it has " + known);
}

trt::Dims dimsOf(Shape const& shape) {
    trt::Dims dims{};
    if (shape.size() > static_cast<size_t>(trt::Dims::MAX_DIMS)) {
        throw std::runtime_error("TensorRT has no tensors of so many dimensions");
    }
    dims.nbDims = static_cast<int32_t>(shape.size());
    for (size_t index = 0; index < shape.size(); ++index) {
        dims.d[index] = shape[index];
    }
    return dims;
}

std::string quoted(std::string const& text) {
    std::string result = "\"";
    for (char const character : text) {
        result += character == '"' || character == '\\' ? std::string("\\") + character : std::string(1, character);
    }
    return result + "\"";
}

std::string identity() {
    return "\"library\": \"tensorrt\", \"version\": " + quoted(version()) + ", \"device\": " + quoted(device());
}

std::string tell(char const* name, trt::DataType datatype, trt::Dims const& dims) {
    std::string shown = "?";
    for (Datatype const& one : kDatatypes) {
        shown = one.inTensorRt == datatype ? one.told : shown;
    }
    std::string sizes;
    for (int32_t index = 0; index < dims.nbDims; ++index) {
        sizes += (index == 0 ? "" : ", ") + std::to_string(dims.d[index]);
    }
    return "{\"name\": " + quoted(name) + ", \"datatype\": " + quoted(shown) + ", \"dims\": [" + sizes + "]}";
}

// --- the engine -------------------------------------------------------------------------------------

// Gives an input with open dimensions an optimization profile from 1 to its largest sizes.
void addProfile(trt::IBuilder& builder, trt::IBuilderConfig& config, Shape const& shape, int64_t largestBatch) {
    Shape smallest = shape, largest = shape;
    bool isOpen = false;
    for (size_t index = 0; index < shape.size(); ++index) {
        if (shape[index] < 0) {
            isOpen = true;
            smallest[index] = 1;
            largest[index] = index == 0 && largestBatch > 0 ? largestBatch : kLargestOpenDim;
        }
    }
    if (!isOpen) {
        return;
    }
    trt::IOptimizationProfile& profile = *builder.createOptimizationProfile(); // stays the builder's
    profile.setDimensions("INPUT", trt::OptProfileSelector::kMIN, dimsOf(smallest));
    profile.setDimensions("INPUT", trt::OptProfileSelector::kOPT, dimsOf(largest));
    profile.setDimensions("INPUT", trt::OptProfileSelector::kMAX, dimsOf(largest));
    config.addOptimizationProfile(&profile);
}

void write(std::string const& out, trt::IHostMemory const& plan) {
    std::ofstream file(out, std::ios::binary);
    file.write(static_cast<char const*>(plan.data()), static_cast<std::streamsize>(plan.size()));
    if (!file.flush()) {
        throw std::runtime_error("cannot write " + out);
    }
}

// Inputs and outputs of the plan itself, in the plan's order.
std::string readBack(trt::ILogger& logger, trt::IHostMemory const& plan) {
    auto const runtime = make<trt::IRuntime>("createInferRuntime_INTERNAL", logger);
    std::unique_ptr<trt::ICudaEngine> const read(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    if (!read) {
        throw std::runtime_error("the plan that was built cannot be deserialized; the messages are above");
    }
    std::string told;
    for (int32_t index = 0; index < read->getNbIOTensors(); ++index) {
        char const* const name = read->getIOTensorName(index);
        told += (index == 0 ? "" : ", ") + tell(name, read->getTensorDataType(name), read->getTensorShape(name));
    }
    return told;
}

std::string build(std::string const& out, Parameters const& parameters) {
    Logger logger;
    Shape shape = readShape(parameters.at("dims"));
    int64_t const batch = std::stoll(parameters.at("max_batch_size"));
    if (batch > 0) {
        shape.insert(shape.begin(), -1);
    }
    auto const builder = make<trt::IBuilder>("createInferBuilder_INTERNAL", logger);
    auto const flags = 1U << static_cast<uint32_t>(trt::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    std::unique_ptr<trt::INetworkDefinition> const network(builder->createNetworkV2(flags));
    trt::ITensor& input = *network->addInput("INPUT", readDatatype(parameters.at("datatype")), dimsOf(shape));
    trt::ITensor& output = *network->addIdentity(input)->getOutput(0);
    output.setName("OUTPUT");
    network->markOutput(output);
    std::unique_ptr<trt::IBuilderConfig> const config(builder->createBuilderConfig());
    addProfile(*builder, *config, shape, batch);
    std::unique_ptr<trt::IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    if (!plan) {
        throw std::runtime_error("TensorRT gave no plan; its messages are above");
    }
    write(out, *plan);
    std::string const told = tell("INPUT", input.getType(), input.getDimensions()) + ", "
        + tell("OUTPUT", output.getType(), output.getDimensions());
    if (device() == "cpu") {
        return "\"tensors\": [" + told + "], \"read_from\": \"network\"";
    }
    std::string const found = readBack(logger, *plan);
    if (found != told) {
        throw std::runtime_error("the plan has the tensors " + found + ", expected " + told);
    }
    return "\"tensors\": [" + found + "], \"read_from\": \"plan\"";
}

} // namespace

int main(int count, char** words) {
    try {
        std::string const command = count > 1 ? words[1] : "";
        if (command == "identify" && count == 2) {
            std::cout << "\n{" << identity() << "}\n";
            return EXIT_SUCCESS;
        }
        if (command == "build" && count > 2) {
            std::string const told = build(words[2], readParameters(count - 3, words + 3));
            std::cout << "\n{" << identity() << ", " << told << "}\n";
            return EXIT_SUCCESS;
        }
        std::cerr << "usage: build identify | build build OUT NAME=VALUE...\n";
    } catch (std::exception const& error) {
        std::cerr << error.what() << "\n";
    }
    return EXIT_FAILURE;
}
