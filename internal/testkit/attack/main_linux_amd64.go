package attack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What the program is when it is started as something else: its first argument.
const (
	asAttacker = "loom-attacker" // the world follows, then the names of attacks
	asOne      = "loom-attack"   // the world and one attack, which it makes itself
	asVictim   = "loom-victim"
	asLent     = "loom-lent" // lends a user's rights
)

// Main converts the program into the attacker or a victim, if it was started as one, and
// ends it. Else it returns.
func Main() {
	if len(os.Args) < 2 {
		return
	}
	args := os.Args[2:]
	switch os.Args[1] {
	case asAttacker:
		attacker(decode(args[0]), args[1:])
	case asOne:
		if err := all()[args[1]](decode(args[0])); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
	case asVictim:
		fmt.Println("ready")
		time.Sleep(time.Hour) // it is killed at the end
	case asLent:
		lent()
	default:
		return
	}
	os.Exit(0)
}

// decode reads a world from an argument.
func decode(text string) World {
	var w World
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		panic(err)
	}
	return w
}

// encode is the inverse of decode.
func (w World) encode() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // it has numbers and names alone
	}
	return string(text)
}

// lent says whose rights it has.
func lent() {
	if os.Geteuid() != os.Getuid() {
		fmt.Print("other")
	}
}

// all are the attacks by name.
func all() map[string]attempt {
	all := map[string]attempt{}
	for _, some := range []map[string]attempt{fileAttacks, commandAttacks, processAttacks, kernelAttacks, networkAttacks} {
		maps.Copy(all, some)
	}
	return all
}

// Names are the names of all attacks, in their order.
func Names() []string { return slices.Sorted(maps.Keys(all())) }

// Sample are attacks of every family, one or two each, for tests that have little time.
func Sample() []string {
	return []string{
		"affinity-server", "chmod-outside", "commands-create", "dotenv-replace", "githook", "io_uring", "kill-server", "memfd-exec", "mount", "new-vscode", "open-helper",
		"pidfd-getfd", "prlimit-server", "ptrace-server", "race-name", "race-symlink", "read-environ", "read-other-agent", "read-store", "suid-bit", "tcp-server",
		"tiocsti-high", "unix-abstract", "userfaultfd", "write-store",
	}
}

// Unstopped are the attacks that reach their targets in a tier; THREATS.md says why.
func Unstopped(namespaces bool) []string {
	if namespaces {
		return []string{"unix-in-ws"}
	}
	return []string{"stat-outside"}
}

// attacker makes attacks, each in its own process, and prints what came of them.
// Without names it makes all.
func attacker(w World, names []string) {
	for n := 3; n < 64; n++ {
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			w.Inherited++ // the runtime's own are closed by execve
		}
	}
	w.FirstStage = os.Getppid()
	if len(names) == 0 {
		names = Names()
	}
	for _, name := range names {
		cmd := exec.Command(w.work("attacker"), asOne, w.encode(), name)
		cmd.Dir, cmd.Env = w.Work, []string{}
		out, err := cmd.CombinedOutput()
		first, _, _ := strings.Cut(string(out), "\n")
		if err == nil {
			first = "REACHED " + first
		}
		fmt.Printf("%s\t%s\t%v\n", name, first, err)
	}
}
