package builtin

import "golang.org/x/sys/unix"

// niceness of the thread that embeds records: a tenth of what a query's thread gets.
const niceness = 10

// yield gives the calling thread less of the processor than others have. Where that is
// refused, it is no worse than before.
func yield() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness) }
