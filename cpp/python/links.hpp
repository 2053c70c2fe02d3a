// Reads the names of links from Python.
#pragma once

#include <string>

#include "../settings.hpp"
#include "arrays.hpp"

namespace untwist::python {

// Returns the kind of link that Python names.
inline LinkKind find_link(const std::string& name) {
  if (name == "clipped") return LinkKind::kClipped;
  if (name == "exact") return LinkKind::kExact;
  require(name == "logit", "the link must be clipped, exact or logit");
  return LinkKind::kLogit;
}

}  // namespace untwist::python
