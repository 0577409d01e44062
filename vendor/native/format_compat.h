// std::format for compilers without <format> (GCC before 13), and for macOS 14, whose C++ library is not known to have
// what libc++'s needs of it (MLXCEL_OWN_FORMAT): mlx-c uses it with plain `{}` only.
#pragma once

#if __has_include(<format>) && !defined(MLXCEL_OWN_FORMAT)
#include <format>
#else
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace std {

// A literal fits an array better than the pattern type of <format>, should that be there as well.
template <size_t N, class... Args>
string format(const char (&literal)[N], Args &&...args) {
  string_view pattern(literal);
  ostringstream out;
  const auto put = [&](const auto &value) {
    const auto field = pattern.find("{}");
    if (field == string_view::npos) {
      throw logic_error("format_compat.h knows only {}, not: " + string(pattern));
    }
    out << pattern.substr(0, field) << value;
    pattern.remove_prefix(field + 2);
  };
  (put(args), ...);
  out << pattern;
  return out.str();
}

} // namespace std
#endif
