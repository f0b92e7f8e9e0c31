#pragma once
// chart — figures as SVG text, for pages that need no script.
//
// Colours are CSS variables of the page ("hbm" is var(--hbm)), so that a page may be light or dark.

#include <string>
#include <utility>
#include <vector>

namespace rowtide {

using ChartPoint = std::pair<double, double>;  // x, y; a y that is no number leaves a gap

struct ChartSeries {
  std::string name, color;
  std::vector<ChartPoint> points;
  bool dots = false;  // a dot for each point
};

struct ChartFrame {
  std::string x_label, y_unit;
  bool from_zero = false;
  std::vector<double> marks;  // vertical lines: where a run was resumed
};

// Lines over a common x, with axes, a legend, and values on hover.  Empty series: a line that says
// so.  Long series are thinned.
std::string line_chart(const ChartFrame& frame, std::vector<ChartSeries> series);

// Bands that stand on each other; each point's values are shown as parts of their sum.
// REQUIRES: all series have the same x.
std::string stacked_chart(const ChartFrame& frame, std::vector<ChartSeries> series);

// "1,234", "0.452", "12.3 k", for axes and tables.
std::string short_number(double value);

// Text that is safe within HTML.
std::string html_text(const std::string& text);

}  // namespace rowtide
