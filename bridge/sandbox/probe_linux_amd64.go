package sandbox

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// probeTime bounds one probe.
const probeTime = 5 * time.Second

// Describe says how jobs are confined. The first call tries which tier works.
func (l *Local) Describe(context.Context) Confinement {
	// Not within the caller's deadline: what is found holds for all.
	l.probed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*probeTime)
		defer cancel()
		l.found = l.probe(ctx)
		l.found.Setting = l.opts.Setting
		if l.found.Tier != TierNamespaces {
			l.launcher.end() // nothing else needs one
		}
		if l.found.Tier != "" {
			l.found.Gaps = gaps(l.found)
		}
	})
	return l.found
}

// unconfined is how jobs run outside of the sandbox.
func unconfined(setting Setting) Confinement {
	c := Confinement{Setting: setting, Tier: tierNone, Layers: []string{inner.LayerLimits}}
	c.Gaps = gaps(c)
	return c
}

// probe finds the best tier that works.
func (l *Local) probe(ctx context.Context) Confinement {
	if l.opts.Setting == Off {
		return unconfined(Off)
	}
	abi := inner.LandlockABI()
	if l.opts.LandlockABI > 0 {
		abi = min(abi, l.opts.LandlockABI)
	}
	if slices.Contains(l.opts.Without, inner.LayerLandlock) {
		abi = 0
	}
	var problems []string
	for _, c := range l.candidates(abi) {
		report, err := l.try(ctx, c)
		if err == nil || len(l.opts.Without) > 0 && report.Error == "" {
			c.Layers, c.Problems = report.Layers, problems
			slices.Sort(c.Layers)
			return c
		}
		name := c.Tier
		if c.LandlockABI == 0 && abi > 0 {
			name += " without Landlock"
		}
		problems = append(problems, fmt.Sprintf("tier %s does not work here: %v", name, err))
	}
	return Confinement{Problems: problems}
}

// candidates are the confinements to try, the best first. Namespaces hold without Landlock
// too, which a machine may have and not allow.
func (l *Local) candidates(abi int) []Confinement {
	var list []Confinement
	for _, c := range []Confinement{{Tier: TierNamespaces, LandlockABI: abi}, {Tier: TierNamespaces}, {Tier: TierLandlock, LandlockABI: abi}} {
		again := len(list) > 0 && list[len(list)-1].Tier == c.Tier && list[len(list)-1].LandlockABI == c.LandlockABI
		if !again && (l.opts.Tier == TierAuto || l.opts.Tier == c.Tier) {
			list = append(list, c)
		}
	}
	return list
}

// try confines a child as a tier does, which tries what must be refused.
func (l *Local) try(ctx context.Context, c Confinement) (inner.Report, error) {
	if c.Tier == TierLandlock && c.LandlockABI == 0 {
		return inner.Report{Error: "none"}, fmt.Errorf("the kernel has no Landlock, or it is switched off")
	}
	// Both outside of what is shown, and outside of each other.
	top, err := os.MkdirTemp(l.opts.TempDir, "loom-probe-")
	if err != nil {
		return inner.Report{Error: "none"}, err
	}
	defer os.RemoveAll(top)
	workspace, outside := filepath.Join(top, "work"), filepath.Join(top, "outside")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return inner.Report{Error: "none"}, err
	}
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		return inner.Report{Error: "none"}, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return inner.Report{Error: "none"}, err
	}
	defer listener.Close()
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return inner.Report{Error: "none"}, err
	}
	defer root.Close()
	spec, err := l.plan(c, Job{Argv: []string{"check"}, Root: root}, Policy{}.withDefaults())
	if err != nil {
		return inner.Report{Error: "none"}, err
	}
	if spec.Scratch != "" {
		defer l.discard(spec.Scratch)
	}
	spec.Check = &inner.Check{Outside: outside, Port: listener.Addr().(*net.TCPAddr).Port, Server: os.Getpid()}
	spec.Check.User, _ = os.Readlink("/proc/self/ns/user") // a kernel without them makes none either
	spec.Check.IPC, _ = os.Readlink("/proc/self/ns/ipc")
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	report, err := l.run(ctx, spec, nil, Streams{}, 1)
	switch {
	case err != nil:
		report.Error = err.Error()
		return report, err
	case report.Error != "":
		return report, fmt.Errorf("%s", report.Error)
	case len(report.Failed) > 0:
		var list []string
		for _, layer := range slices.Sorted(maps.Keys(report.Failed)) {
			list = append(list, layer+": "+report.Failed[layer])
		}
		return report, fmt.Errorf("%s", strings.Join(list, ", "))
	}
	return report, nil
}
