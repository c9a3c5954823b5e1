// The runtime module of kind "pto".
#include <tvm/ffi/extra/module.h>
