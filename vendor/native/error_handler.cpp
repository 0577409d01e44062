// The error handler given to mlx_set_error_handler. mlx-c calls it on the thread whose call failed,
// so each thread keeps its own message; the caller reads it after a non-zero return code.
#include <string>

namespace {
thread_local std::string last_error;
}

#pragma GCC visibility push(default)
extern "C" {

void mlxcel_error_handler(const char *message, void *) { last_error = message; }

// The message of this thread's last failed call, "" when there is none.
const char *mlxcel_last_error(void) { return last_error.c_str(); }

void mlxcel_clear_error(void) { last_error.clear(); }
}
#pragma GCC visibility pop
