#pragma once
// interrupt — Ctrl-C asks once, and insists the second time.
//
// The first SIGINT or SIGTERM sets a mark that the training loop looks at between steps; the second
// ends the process at once with 130.

namespace rowtide {

// Takes SIGINT and SIGTERM, and lets writes to a closed pipe fail instead of ending the process:
// a run whose progress is piped away goes on.
void watch_for_interrupts();

// Whether the first signal has come.
bool interrupt_requested();

}  // namespace rowtide
