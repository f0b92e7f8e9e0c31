#pragma once
// signals — threads of ours leave signals to the threads of the program they run in.

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace rowtide {

// Called by a thread as it begins.  Its system calls are then not interrupted either.  What the
// thread does itself (a bad address, say) still reaches the program's handlers.
inline void leave_signals_to_others() {
  sigset_t signals;
  sigfillset(&signals);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&signals, own);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace rowtide
