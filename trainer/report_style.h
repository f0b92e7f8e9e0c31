#pragma once
// report_style — the looks of report.html.

namespace rowtide {

inline constexpr const char* kReportStyle = R"(
:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--ink:#1b2430;--soft:#667284;--rule:#e3e7ec;
--hbm:#2f6fde;--ddr:#16a596;--ssd:#e8872b;--new:#a9b4c2;--train:#5b6ee1;--eval:#c4427a;
--good:#1b8a4b;--warn:#b06a00;--bad:#c22f3a}
@media(prefers-color-scheme:dark){:root{--page:#10141a;--card:#181e27;--ink:#e6ebf2;--soft:#93a0b3;
--rule:#2a3340;--hbm:#5b93f5;--ddr:#2cc4b3;--ssd:#f09c4a;--new:#5d6b7e;--train:#8593f2;--eval:#e8699d;
--good:#41b873;--warn:#e0a03c;--bad:#ee6b74}}
*{box-sizing:border-box}
body{margin:0;padding:28px;background:var(--page);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,.tiles{max-width:1320px;margin:0 auto}
h1{font-size:24px;margin:0 0 4px;font-weight:650;letter-spacing:-.01em}
h2{font-size:14px;margin:0 0 10px;font-weight:600}
.state{font-size:12px;font-weight:600;padding:3px 10px;border-radius:99px;vertical-align:4px;
margin-left:8px;color:#fff;background:var(--soft)}
.state.end{background:var(--good)}.state.interrupted{background:var(--warn)}
.state.failed{background:var(--bad)}
.message{margin:6px 0 0;color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:14px;margin:18px auto}
.tiles div,.card{background:var(--card);border:1px solid var(--rule);border-radius:10px}
.tiles div{padding:14px 16px}
.tiles b{display:block;font-size:22px;font-weight:650;font-variant-numeric:tabular-nums}
.tiles span{color:var(--soft);font-size:12px}
main{columns:400px;column-gap:14px}
.card{padding:16px;margin:0 0 14px;break-inside:avoid;overflow-x:auto}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--soft);margin-bottom:6px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:11px}
.grid{stroke:var(--rule)}.mark{stroke:var(--warn);stroke-dasharray:3 3}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.band{opacity:.85}
.dot{stroke:var(--card);stroke-width:1.5}.hover{opacity:0}.hover:hover{opacity:1}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 7px;font-size:13px;text-align:right;border-top:1px solid var(--rule);white-space:nowrap}
th:first-child{text-align:left;font-weight:500}
tr:first-child th,tr:first-child td{border-top:0}
th{color:var(--soft);font-weight:500}
td.left{text-align:left;white-space:normal}
td:nth-child(2):last-child{white-space:normal;overflow-wrap:anywhere}
.bars td:nth-child(2),td:last-child:has(.bar){width:50%}
.bar{display:flex;height:11px;min-width:80px;border-radius:4px;overflow:hidden;background:var(--rule)}
.bar i{display:block;height:100%}.bar.pale i{opacity:.45}
.note,.none{color:var(--soft);font-size:12px;margin:8px 0 0}
summary{cursor:pointer;color:var(--soft);margin:8px 0}
pre{overflow:auto;max-height:420px;font-size:12px;margin:0}
)";

}  // namespace rowtide
