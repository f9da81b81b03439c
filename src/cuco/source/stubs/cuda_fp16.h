// The toolkit's own header, with every function callable from host and device code.
#pragma once
#pragma clang force_cuda_host_device begin
#include_next <cuda_fp16.h>
#pragma clang force_cuda_host_device end
