#include "trainer/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace rowtide {
namespace {

constexpr double kWidth = 480, kHeight = 200;
constexpr double kLeft = 56, kRight = 14, kTop = 12, kBottom = 34;
constexpr size_t kMaxPoints = 400;  // more than the pixels that a line has for them

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Steps of 1, 2 or 5 that cut the range into about `count` parts.
double nice_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value), high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  void widen() {
    if (high == low) low -= std::abs(low) * 0.1 + 1e-9, high += std::abs(high) * 0.1 + 1e-9;
  }
};

class Plot {
 public:
  Plot(const ChartFrame& frame, Range x, Range y) : frame_(frame), x_(x), y_(y) {
    x_.widen();
    y_.widen();
  }

  double x(double value) const {
    return kLeft + (value - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }

  void axes() {
    const double step = nice_step(y_.high - y_.low, 4);
    for (double v = std::ceil(y_.low / step) * step; v <= y_.high + step * 1e-9; v += step) {
      if (std::abs(v) < step * 1e-9) v = 0;
      add(format("<line class='grid' x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f'/>", kLeft,
                 kWidth - kRight, y(v), y(v)));
      label(kLeft - 6, y(v) + 4, "end", short_number(v) + frame_.y_unit);
    }
    const double x_step = nice_step(x_.high - x_.low, 6);
    for (double v = std::ceil(x_.low / x_step) * x_step; v <= x_.high; v += x_step) {
      label(x(v), kHeight - kBottom + 16, "middle", short_number(v));
    }
    label(kWidth - kRight, kHeight - 4, "end", frame_.x_label);
    for (const double mark : frame_.marks) {
      add(format("<line class='mark' x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f'/>", x(mark), x(mark),
                 kTop, kHeight - kBottom));
      label(x(mark) + 4, kTop + 10, "start", "resumed");
    }
  }

  void line(const ChartSeries& series) {
    std::string path;
    bool pen_down = false;
    for (const auto& [px, py] : series.points) {
      if (!std::isfinite(py)) {
        pen_down = false;
        continue;
      }
      path += format("%c%.1f %.1f", pen_down ? 'L' : 'M', x(px), y(py));
      pen_down = true;
    }
    add("<path class='line' style='stroke:var(--" + series.color + ")' d='" + path + "'/>");
  }

  // Points: small ones to hover over, or dots to see.
  void points(const ChartSeries& series, const std::string& unit) {
    for (const auto& [px, py] : series.points) {
      if (!std::isfinite(py)) continue;
      add(format("<circle class='%s' style='fill:var(--%s)' cx='%.1f' cy='%.1f' r='%d'>",
                 series.dots ? "dot" : "hover", series.color.c_str(), x(px), y(py),
                 series.dots ? 4 : 5));
      add("<title>" + html_text(series.name) + " " + short_number(py) + unit + " at " +
          html_text(frame_.x_label) + " " + short_number(px) + "</title></circle>");
    }
  }

  void band(const ChartSeries& low, const ChartSeries& high) {
    std::string path;
    for (const auto& [px, py] : high.points) {
      path += format("%c%.1f %.1f", path.empty() ? 'M' : 'L', x(px), y(py));
    }
    for (auto point = low.points.rbegin(); point != low.points.rend(); ++point) {
      path += format("L%.1f %.1f", x(point->first), y(point->second));
    }
    add("<path class='band' style='fill:var(--" + high.color + ")' d='" + path + "Z'/>");
  }

  std::string finish(const std::vector<ChartSeries>& legend) const {
    std::string out = "<div class='legend'>";
    for (const ChartSeries& series : legend) {
      out += "<span><i style='background:var(--" + series.color + ")'></i>" +
             html_text(series.name) + "</span>";
    }
    return out + "</div>" + format("<svg viewBox='0 0 %.0f %.0f' role='img'>", kWidth, kHeight) +
           body_ + "</svg>";
  }

 private:
  void add(const std::string& text) { body_ += text; }
  void label(double px, double py, const char* anchor, const std::string& text) {
    add(format("<text x='%.1f' y='%.1f' text-anchor='%s'>", px, py, anchor) + html_text(text) +
        "</text>");
  }

  const ChartFrame& frame_;
  Range x_, y_;
  std::string body_;
};

void thin(ChartSeries& series) {
  const size_t every = (series.points.size() + kMaxPoints - 1) / kMaxPoints;
  if (every < 2) return;
  std::vector<ChartPoint> kept;
  for (size_t i = 0; i < series.points.size(); i += every) kept.push_back(series.points[i]);
  if (kept.back() != series.points.back()) kept.push_back(series.points.back());
  series.points = std::move(kept);
}

std::string nothing_to_show() { return "<p class='none'>Nothing was recorded.</p>"; }

}  // namespace

std::string line_chart(const ChartFrame& frame, std::vector<ChartSeries> series) {
  Range x, y;
  if (frame.from_zero) y.include(0);
  for (ChartSeries& one : series) {
    thin(one);
    for (const auto& [px, py] : one.points) {
      if (std::isfinite(py)) x.include(px), y.include(py);
    }
  }
  std::erase_if(series, [](const ChartSeries& one) { return one.points.empty(); });
  if (x.empty()) return nothing_to_show();
  Plot plot(frame, x, y);
  plot.axes();
  for (const ChartSeries& one : series) {
    if (!one.dots || one.points.size() > 1) plot.line(one);
  }
  for (const ChartSeries& one : series) plot.points(one, frame.y_unit);
  return plot.finish(series);
}

std::string stacked_chart(const ChartFrame& frame, std::vector<ChartSeries> series) {
  Range x;
  for (ChartSeries& one : series) thin(one);
  if (series.empty() || series[0].points.empty()) return nothing_to_show();
  for (const auto& point : series[0].points) x.include(point.first);
  const size_t count = series[0].points.size();
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (const ChartSeries& one : series) sum += one.points[i].second;
    double below = 0;
    for (ChartSeries& one : series) {
      below += sum > 0 ? one.points[i].second / sum * 100 : 0;
      one.points[i].second = below;
    }
  }
  Plot plot(frame, x, {0, 100});
  ChartSeries floor = series[0];
  for (auto& point : floor.points) point.second = 0;
  for (size_t i = 0; i < series.size(); ++i) plot.band(i == 0 ? floor : series[i - 1], series[i]);
  plot.axes();
  return plot.finish(series);
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "\xE2\x80\x93";
  const double size = std::abs(value);
  static const std::pair<double, const char*> kUnits[] = {{1e9, " G"}, {1e6, " M"}, {1e4, " k"}};
  for (const auto& [least, unit] : kUnits) {
    if (size >= least) return format("%.4g%s", value / (least == 1e4 ? 1e3 : least), unit);
  }
  return format("%.4g", value);
}

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace rowtide
