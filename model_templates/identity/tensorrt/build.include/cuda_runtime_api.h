// For a server's image without CUDA's own header: what NvInfer.h takes from it.
#pragma once

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
