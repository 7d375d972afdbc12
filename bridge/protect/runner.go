package protect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

const (
	// ToolName is the tool that the audit's records of what was put back name.
	ToolName = "workspace:restore"

	codeDenied = "PERMISSION_DENIED"
	auditTime  = 10 * time.Second
	// lookEvery is the time between two looks at what a program that runs on has done.
	lookEvery = time.Second

	gitFolder = ".git"
)

// Options adjusts a Runner. Nil and zero fields mean the defaults.
type Options struct {
	// Always are paths that are protected whatever the policy of a job says. Default none.
	Always []string
	// Dir is a folder of the server's own, in which is noted what protected paths were while
	// programs run: what those of a killed server changed is put back by New. Default: it is
	// not noted.
	Dir string
	// Audit writes a record of what was put back. Default: nothing is written.
	Audit func(context.Context, audit.Record) error
	// Now gives the time. Default time.Now.
	Now func() time.Time
	// Logger hears of what was put back, and of what could not be. Default silent.
	Logger *slog.Logger
}

// Runner is a runner behind which protected paths are as they were. It is safe for
// concurrent use.
type Runner struct {
	sandbox.Runner
	opts    Options
	journal *journal // nil without a folder

	mu         sync.Mutex
	workspaces map[string]*workspace // those where programs run, by name; guarded by mu
}

var _ sandbox.Runner = (*Runner)(nil)

// New returns a runner whose jobs another one runs, and puts back what the programs of a
// killed server changed. An error is one of the folder.
func New(runner sandbox.Runner, opts *Options) (*Runner, error) {
	r := &Runner{Runner: runner, workspaces: map[string]*workspace{}}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.journal, err = openJournal(r.opts.Dir); err != nil {
		return nil, err
	}
	return r, r.recover()
}

// Run runs a job. What it did to protected paths is undone when it has ended, and, if it
// runs on, from time to time; Outcome.Restored names them.
func (r *Runner) Run(ctx context.Context, job sandbox.Job, streams sandbox.Streams) (sandbox.Outcome, error) {
	paths := job.Policy.Protect
	if paths == nil {
		paths = sandbox.Protected()
	}
	paths = slices.Clone(paths)
	for _, path := range r.opts.Always {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	// In worktrees and submodules it is a file that says where the repository is.
	if info, err := job.Root.Lstat(gitFolder); err == nil && !info.IsDir() && !slices.Contains(paths, gitFolder) {
		paths = append(paths, gitFolder)
	}
	job.Policy.Protect = paths
	off := job.Policy.Mode == sandbox.ModeOff
	c := r.Describe(ctx)
	if job.Policy.Mode == sandbox.ModeRead && c.Confined() {
		return r.Runner.Run(ctx, job, streams)
	}
	w := r.enter(job.Root)
	defer r.leave(job.Root, w)
	held, err := r.hold(job, w, paths, c.Tier == sandbox.TierNamespaces && !off)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	stop, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		r.lookOn(job, w, held, stop)
	}()
	out, err := r.Runner.Run(ctx, job, streams)
	close(stop)
	<-looked
	r.undo(job, w, held)
	out.Restored = held.release(w)
	return out, err
}

// lookOn undoes what a program does while it runs, until it is stopped.
func (r *Runner) lookOn(job sandbox.Job, w *workspace, held *holding, stop <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			r.undo(job, w, held)
		}
	}
}

// undo puts back what was changed, and tells of it.
func (r *Runner) undo(job sandbox.Job, w *workspace, held *holding) {
	restored, err := w.restore(job.Root, held)
	if err != nil && held.complained(err) {
		r.opts.Logger.Error("a program changed what is protected, and it could not be put back", "workspace", job.Root.Name(), "scope", job.Scope.String(), "error", err)
	}
	r.tell(job, restored)
}

// tell tells the log and the audit what was put back.
func (r *Runner) tell(job sandbox.Job, restored []string) {
	if len(restored) == 0 {
		return
	}
	r.opts.Logger.Warn("a program changed what is protected, which was put back", "workspace", job.Root.Name(), "scope", job.Scope.String(), "paths", restored)
	if r.opts.Audit == nil {
		return
	}
	args, _ := json.Marshal(map[string][]string{"paths": restored}) // texts alone
	record := audit.Record{
		Tool: ToolName, Args: audit.Safe(args), Outcome: audit.OutcomeDenied, Code: codeDenied, Time: r.opts.Now(),
		Tier: r.Describe(context.Background()).Tier,
	}
	record.Tenant, record.Agent = job.Scope.Tenant, job.Scope.Owner
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	if err := r.opts.Audit(ctx, record); err != nil {
		r.opts.Logger.Error("what was put back is not audited", "tenant", record.Tenant, "agent", record.Agent, "paths", restored, "error", err)
	}
}

// enter and leave count the programs of a workspace.
func (r *Runner) enter(root *os.Root) *workspace {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.workspaces[root.Name()]
	if !ok {
		w = &workspace{paths: map[string]*kept{}}
		r.workspaces[root.Name()] = w
	}
	w.programs++
	return w
}

func (r *Runner) leave(root *os.Root, w *workspace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.programs--; w.programs == 0 {
		delete(r.workspaces, root.Name())
		r.journal.forget(root)
	}
}

// workspace is one in which programs run.
type workspace struct {
	programs int // guarded by the runner's mu

	mu    sync.Mutex
	paths map[string]*kept // guarded by mu
}

// kept is a path as it was before the first of some programs began.
type kept struct {
	programs int
	before   snapshot
}

// holding is what one program may not change. One goroutine uses it at a time.
type holding struct {
	paths    []string
	restored []string
	said     string
}

// complained tells whether an error is another one than the last.
func (h *holding) complained(err error) bool {
	news := h.said != err.Error()
	h.said = err.Error()
	return news
}

// hold remembers paths until they are released, also for a server that comes after this
// one. Mounted says that the sandbox keeps what is there.
func (r *Runner) hold(job sandbox.Job, w *workspace, paths []string, mounted bool) (*holding, error) {
	w.mu.Lock()
	held, news := w.hold(job.Root, paths, mounted)
	var err error
	if news {
		err = r.journal.write(job.Root, job.Scope, w.paths)
	}
	w.mu.Unlock()
	if err != nil {
		held.release(w)
		return nil, fmt.Errorf("protect: note what is protected: %w", err)
	}
	return held, nil
}

// hold remembers paths until they are released, and tells whether some are remembered only
// now. The caller holds mu.
func (w *workspace) hold(root *os.Root, paths []string, mounted bool) (h *holding, news bool) {
	h = &holding{}
	_, err := root.Lstat(gitFolder)
	newGit := errors.Is(err, os.ErrNotExist)
	for _, path := range paths {
		if newGit && strings.HasPrefix(path, gitFolder+"/") {
			continue
		}
		path, kind := placeOf(root, path)
		if slices.Contains(h.paths, path) || mounted && kind == ordinary {
			continue
		}
		k, ok := w.paths[path]
		if !ok {
			before, err := take(root, path, true)
			if err != nil {
				continue // it can't be read: nobody relies on it
			}
			k = &kept{before: before}
			w.paths[path] = k
			news = true
		}
		k.programs++
		h.paths = append(h.paths, path)
	}
	return h, news
}

// restore puts back what a program may not change, and returns what was.
func (w *workspace) restore(root *os.Root, h *holding) (restored []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range h.paths {
		k := w.paths[path]
		place, _ := placeOf(root, path) // a link on the way would lead elsewhere
		now, failed := take(root, path, false)
		if failed == nil && place == path && now.same(k.before) {
			continue
		}
		if failed = putBack(root, path, &k.before); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		restored = append(restored, path)
		if !slices.Contains(h.restored, path) {
			h.restored = append(h.restored, path)
		}
	}
	return restored, err
}

// release forgets what nobody holds any more, and returns what was put back.
func (h *holding) release(w *workspace) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range h.paths {
		k := w.paths[path]
		if k.programs--; k.programs == 0 {
			delete(w.paths, path)
		}
	}
	return h.restored
}
