// The one place where the emulator's NCCL room includes NVIDIA's headers. They come from the user's install at build
// time; nothing of them is shipped.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda_runtime.h>

#include <nccl.h>

#include <nccl_device.h>

#include <nccl_device/gin/proxy/gin_proxy_device_host_common.h>
#pragma GCC diagnostic pop
