// Package machine starts a program as if the machine were another one: its kernel refuses
// some calls, or only pretends to make them, or the program runs in a default container.
// It is for tests of what finds out what a machine can do.
//
// The refusals are the kernel's own, by a seccomp filter under which the program is
// started. [Main] has to be called first in the TestMain of users of a [Machine].
//
// What [Docker] stands for: the capabilities of a default container, what its seccomp
// profile refuses (by the list of moby's default profile), and its namespaces with /proc
// masked. What it leaves out: AppArmor and SELinux, its own image (the files are the
// machine's), the device list of /dev, cgroups, and what the profile refuses of
// personality.
//
// Caveats: Linux on amd64 alone. A container takes root to make.
package machine
