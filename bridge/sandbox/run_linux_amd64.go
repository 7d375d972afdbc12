package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

const (
	// killTime is how long the first stage has to kill its run before it is killed
	// itself.
	killTime = 300 * time.Millisecond
	// drainTime bounds the wait for the end of output after all processes have ended:
	// a descriptor may have been passed to somebody outside.
	drainTime = time.Second
	// limitOutput is the limit of output as Outcome.Limit names it.
	limitOutput = "output"
)

// Run runs a job in its own process, confined.
func (l *Local) Run(ctx context.Context, job Job, streams Streams) (RunOutcome, error) {
	if err := l.begin(); err != nil {
		return RunOutcome{}, err
	}
	defer l.running.Done()
	policy := job.Policy.withDefaults()
	if err := policy.check(l.opts.AllowOff); err != nil {
		return RunOutcome{}, err
	}
	c := l.Describe(ctx)
	if policy.Mode == ModeOff {
		c = unconfined(l.opts.Setting)
	}
	if !c.Confined() && c.Tier != tierNone {
		return RunOutcome{}, &UnavailableError{strings.Join(c.Problems, "; ")}
	}
	spec, err := l.plan(c, job, policy)
	if err != nil {
		return RunOutcome{}, err
	}
	if spec.Scratch != "" {
		defer l.discard(spec.Scratch)
	}
	out, err := wayOut(&spec, job, policy)
	if err != nil {
		return RunOutcome{}, err
	}
	defer out.close()
	report, err := l.run(ctx, spec, out, streams, policy.Limits.Output)
	if err != nil {
		return RunOutcome{}, err
	}
	if report.Missing {
		return RunOutcome{}, fmt.Errorf("%w: %s", ErrNoProgram, job.Argv[0])
	}
	if report.Error != "" {
		return RunOutcome{}, fmt.Errorf("sandbox: %s", report.Error)
	}
	o := RunOutcome{Exit: report.Exit, Signal: report.Signal, Limit: report.Limit, Refused: report.Refused, Confinement: c}
	for _, f := range report.Made {
		o.Made = append(o.Made, Folder{f.Dev, f.Ino, f.Born})
	}
	return o, nil
}

// identity is whom a run belongs to.
type identity struct{ uid, gid int }

// plan says how a job is run.
func (l *Local) plan(c Confinement, job Job, policy Policy) (inner.Spec, error) {
	if len(job.Argv) == 0 || job.Argv[0] == "" {
		return inner.Spec{}, errors.New("sandbox: no program")
	}
	workspace, who, err := workspaceOf(job.Root)
	if err != nil {
		return inner.Spec{}, err
	}
	spec := inner.Spec{
		Tier: c.Tier, Argv: job.Argv, Workspace: workspace, Cwd: filepath.Join(workspace.Path, job.Cwd),
		ReadOnly: policy.Mode == ModeRead, Read: resolved(policy.Read), Write: resolved(policy.Write),
		Hide: resolved(policy.Hide), Protect: policy.Protect, UID: who.uid, GID: who.gid,
		ABI: c.LandlockABI, Without: slices.Clone(l.opts.Without),
		Limits: inner.Limits{
			CPU: policy.Limits.CPU, Memory: policy.Limits.Memory, Processes: policy.Limits.Processes, File: policy.Limits.File,
			Scratch: policy.Limits.Scratch, DiskFloor: policy.Limits.DiskFloor, OpenFiles: policy.Limits.OpenFiles,
		},
	}
	for _, f := range policy.Own {
		spec.Own = append(spec.Own, inner.Folder{Dev: f.Dev, Ino: f.Ino, Born: f.Born})
	}
	if c.LandlockABI == 0 {
		spec.Without = append(spec.Without, inner.LayerLandlock)
	}
	home := "/tmp/home"
	temp := "/tmp"
	if c.Tier != TierNamespaces {
		if err := l.hidden(spec); err != nil {
			return inner.Spec{}, err
		}
		if spec.Scratch, err = l.scratch(who); err != nil {
			return inner.Spec{}, err
		}
		home, temp = spec.Scratch, spec.Scratch
	}
	spec.Env = append([]string{"PATH=" + Path, "HOME=" + home, "TMPDIR=" + temp, "LANG=C.UTF-8", "TERM=dumb", "PWD=" + spec.Cwd}, job.Env...)
	return spec, nil
}

// workspaceOf describes a workspace, and says whom its tools run as: the server's own
// user, but for a root server the owner of the workspace.
func workspaceOf(root *os.Root) (inner.Folder, identity, error) {
	info, err := root.Stat(".")
	if err != nil {
		return inner.Folder{}, identity{}, fmt.Errorf("sandbox: workspace: %w", err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	path, err := filepath.Abs(root.Name())
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return inner.Folder{}, identity{}, fmt.Errorf("sandbox: workspace: %w", err)
	}
	who := identity{os.Geteuid(), os.Getegid()}
	if who.uid == 0 && stat.Uid != 0 {
		who = identity{int(stat.Uid), int(stat.Gid)}
	}
	return inner.Folder{Path: path, Dev: stat.Dev, Ino: stat.Ino}, who, nil
}

// resolved returns places with links resolved, leaving out missing ones.
func resolved(places []string) []string {
	var out []string
	for _, place := range places {
		if real, err := filepath.EvalSymlinks(place); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// hidden refuses a run in which something could be seen that must not be: Landlock
// can't take away what a folder above was given.
func (l *Local) hidden(spec inner.Spec) error {
	if spec.Tier != TierLandlock {
		return nil
	}
	for _, place := range spec.Hide {
		rel, err := filepath.Rel(spec.Workspace.Path, place)
		if err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("%w: %s lies in the workspace, and tier %s can't hide it: keep it elsewhere (--data-dir for the store), or let its profile say hide_best_effort", ErrPolicy, place, TierLandlock)
		}
	}
	return nil
}

// discard removes a folder that a tool could do anything with.
func (l *Local) discard(place string) {
	if err := os.RemoveAll(place); err == nil {
		return
	}
	// Folders that can't be entered.
	_ = filepath.WalkDir(place, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(place); err != nil {
		l.logger.Warn("temporary files of a tool stay", "folder", place, "error", err)
	}
}

// run starts the first stage, feeds it, and waits until all is over.
func (l *Local) run(ctx context.Context, spec inner.Spec, way *outward, streams Streams, most int64) (inner.Report, error) {
	if err := ctx.Err(); err != nil {
		return inner.Report{}, err
	}
	helper, err := l.helper()
	if err != nil {
		return inner.Report{}, err
	}
	spec.Input = streams.Stdin != nil
	p, err := l.begun(spec, helper)
	if err != nil {
		return inner.Report{}, err
	}
	var pumps sync.WaitGroup
	out := &output{left: most, over: p.cancel}
	pumps.Go(func() { out.pump(p.stdout, streams.Stdout) })
	pumps.Go(func() { out.pump(p.stderr, streams.Stderr) })
	if p.stdin != nil {
		go p.feed(streams.Stdin) // it may wait for a reader that never reads
	}
	stopped := p.stopWith(ctx, l.stop)
	if spec.Proxy > 0 {
		p.serve(way)
	}
	report, err := p.wait()
	close(stopped)
	deadline := time.Now().Add(drainTime)
	_, _ = p.stdout.SetReadDeadline(deadline), p.stderr.SetReadDeadline(deadline) // pipes have them
	pumps.Wait()
	p.close()
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	if out.failed() != nil {
		return report, out.failed()
	}
	select {
	case <-l.stop:
		return report, ErrClosed
	default:
	}
	if out.exceeded.Load() {
		report.Limit, err = limitOutput, nil
	}
	return report, err
}

// output counts and passes on what a program writes.
type output struct {
	over func() // ends the run

	mu       sync.Mutex
	left     int64 // guarded by mu
	err      error // guarded by mu; of a writer
	exceeded atomic.Bool
}

// pump passes one stream on. What comes after the limit is thrown away.
func (o *output) pump(from *os.File, to io.Writer) {
	toEnd(from, func(p []byte) { o.pass(p, to) })
}

// maxHeld is how much of a pipe is read after its deadline: a pipe holds no more, unless who
// has its other end goes on writing.
const maxHeld = 1 << 20

// toEnd reads a pipe until its end or its deadline, and then what it holds: at a deadline, a
// Read refuses without looking, and a busy machine may not have come to read anything yet.
func toEnd(from *os.File, to func([]byte)) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			to(buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return
		}
	}
	raw, err := from.SyscallConn()
	if err != nil || from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for held := 0; held < maxHeld; {
		n := 0
		if failed := raw.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buffer)
			return true // never waits
		}); failed != nil || n <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
		n = max(0, n)
		to(buffer[:n])
		held += n
	}
}

func (o *output) pass(p []byte, to io.Writer) {
	o.mu.Lock()
	fit := min(int64(len(p)), o.left)
	o.left -= fit
	failed := o.err != nil
	o.mu.Unlock()
	if fit < int64(len(p)) && !o.exceeded.Swap(true) {
		o.over()
	}
	if to == nil || failed || fit == 0 {
		return
	}
	if _, err := to.Write(p[:fit]); err != nil {
		o.mu.Lock()
		o.err = err
		o.mu.Unlock()
		o.over()
	}
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
