#pragma once
// criteo_error — what is wrong with a malformed Criteo line, for people.
//
// Slow and plain: it reads the line anew, field by field, and shares no code with the parser.

#include <string>
#include <string_view>

namespace rowtide {

// "12: field 5 (I4): expected ..., there is "12x"", where 12 is the column; empty if the line is
// well formed.  `line` has no line end.
std::string explain_criteo_line(std::string_view line, bool has_label);

// The same for the first line of a file, which may have a label or not; sets `has_label` if the
// line has one of the two numbers of fields.
std::string explain_first_criteo_line(std::string_view line, bool& has_label);

}  // namespace rowtide
