// std::format for compilers without <format> (GCC before 13): mlx-c uses it with plain `{}` only.
#pragma once

#if __has_include(<format>)
#include <format>
#else
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace std {

template <class... Args>
string format(string_view pattern, const Args &...args) {
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
