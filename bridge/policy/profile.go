package policy

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// Profile is what a call may do. It is a value: its slices and map are shared, so do not
// change them.
type Profile struct {
	// Name is that of the profile, as the operator named it; audit records have it.
	Name string
	// Mode is how much it gives.
	Mode sandbox.Mode
	// Read and Write are absolute places outside of the workspace that it gives too.
	Read, Write []string
	// Protect are paths in the workspace that can be read but not changed, whole folders
	// among them.
	Protect []string
	// Hide are paths in the workspace that can't be seen. HideBestEffort lets programs
	// run where the sandbox can't hide them: file tools hide them all the same.
	Hide           []string
	HideBestEffort bool
	// Hosts are the rules of mode net: a request may pass that one of them allows whole, and
	// the first that does gives its secret. In mode open everything public may pass, and the
	// rules give secrets alone.
	Hosts []Host
	// Environment are further variables of programs.
	Environment map[string]string
	// Limits bound one program. A zero field is that of sandbox.DefaultLimits.
	Limits sandbox.Limits
	// Wall is the longest that a program may run; zero: as long as its call.
	Wall time.Duration
}

// Host is a rule about requests to hosts. The egress proxy keeps it.
type Host struct {
	// Host is a name, such as api.github.com, or *. and the end of names: *.npmjs.org is
	// every name below npmjs.org, not itself. Lower case.
	Host string
	// Ports are the reachable ports. Empty: 80 and 443.
	Ports []int
	// Paths are the beginnings of paths that may be asked for. Empty: all.
	Paths []string
	// Methods are the allowed methods, in capitals. Empty: all.
	Methods []string
	// Address is where to connect to in place of what the name leads to, such as
	// 10.1.2.3:8443; it may be in a private network. Empty: what the name leads to, if that
	// is public.
	Address string
	// Secret is what the proxy puts into requests; nil for nothing.
	Secret *Secret
}

// Secret is a value that a program uses without ever seeing it.
type Secret struct {
	// Env is the variable in which the program finds a placeholder.
	Env string
	// From is where the value comes from: env:NAME, a variable of the server, or
	// file:/path.
	From string
	// Header is the header of requests in which the placeholder becomes the value.
	Header string
}

// Sandbox is the part of a profile that a runner keeps. What is hidden in the workspace is not
// among it: it has no absolute name yet.
func (p Profile) Sandbox() sandbox.Policy {
	protect := p.Protect
	if protect == nil {
		protect = sandbox.Protected()
	}
	return sandbox.Policy{Mode: p.Mode, Read: p.Read, Write: p.Write, Protect: protect, Limits: p.Limits}
}

// Gives reports whether the profile gives an absolute place outside of the workspace, to be
// read or to be changed.
func (p Profile) Gives(place string, write bool) bool {
	return coveredBy(place, p.Write) && rank(p.Mode) > rankRead || !write && coveredBy(place, p.Read) || rank(p.Mode) == rankOff
}

// Env are the variables as NAME=value, sorted.
func (p Profile) Env() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		env = append(env, name+"="+p.Environment[name])
	}
	return env
}

// Kinds of capabilities.
const (
	// KindTool is to use a tool.
	KindTool = "tool"
	// KindHost is to reach a host.
	KindHost = "host"
	// KindRead and KindWrite are to read, and to change, a place outside of the workspace.
	KindRead  = "read"
	KindWrite = "write"
)

// ErrUnattended: the request is denied because no person could be asked.
var ErrUnattended = errors.New("policy: there is no approver to ask")

// Capability is one thing beyond a profile: never a command line, never the arguments of
// one call.
type Capability struct {
	// Kind is tool, host, read or write.
	Kind string
	// Name is that of the tool; a host with its port, such as api.github.com:443; or an
	// absolute place, which stands for everything below it.
	Name string
}

// Builtin are the profiles that there are without a file, by their names. A file may have
// one of the same name; extends = "builtin:work" means the one here.
func Builtin() map[string]Profile {
	all := map[string]Profile{}
	for _, mode := range []sandbox.Mode{sandbox.ModeRead, sandbox.ModeWork, sandbox.ModeNet, sandbox.ModeOpen} {
		all[string(mode)] = Profile{Name: string(mode), Mode: mode, Protect: sandbox.Protected(), Limits: sandbox.DefaultLimits()}
	}
	return all
}

// ReadOnly is the name of the profile that gives least: reading the workspace.
const ReadOnly = "read"

// Default is the name of the profile of calls that no binding gives another.
const Default = "work"
