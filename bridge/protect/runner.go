package protect

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

const (
	// ToolName is the tool that the audit's records of what programs were kept from name.
	ToolName = "workspace:protect"

	codeDenied = "PERMISSION_DENIED"
	auditTime  = 10 * time.Second
	// maxOwn bounds the folders of programs' own repositories that are remembered; the oldest
	// are forgotten first.
	maxOwn = 4096
)

// Options adjusts a Runner. Nil and zero fields mean the defaults.
type Options struct {
	// Always are paths that are protected whatever the policy of a job says. Default none.
	Always []string
	// Audit writes a record of what a program was kept from. Default: nothing is written.
	Audit func(context.Context, audit.Record) error
	// Now gives the time. Default time.Now.
	Now func() time.Time
	// Logger logs what programs were kept from. Default silent.
	Logger *slog.Logger
}

// Runner is a runner whose programs are kept from what gives commands to others. It is safe
// for concurrent use.
type Runner struct {
	sandbox.Runner
	opts   Options
	follow *Follower

	mu  sync.Mutex
	own []sandbox.Folder // of repositories that programs have made; guarded by mu
}

var _ sandbox.Runner = (*Runner)(nil)

// New returns a runner whose jobs another one runs.
func New(runner sandbox.Runner, opts *Options) *Runner {
	r := &Runner{Runner: runner}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	r.follow = NewFollower(r.opts.Now)
	return r
}

// Run runs a job. Outcome.Refused names what of the workspace it was kept from.
func (r *Runner) Run(ctx context.Context, job sandbox.Job, streams sandbox.Streams) (sandbox.RunOutcome, error) {
	paths := job.Policy.Protect
	if paths == nil {
		paths = sandbox.Protected()
	}
	r.mu.Lock()
	own := slices.Clone(r.own)
	r.mu.Unlock()
	job.Policy.Own = own
	job.Policy.Protect = r.paths(job.Root, paths, own)
	out, err := r.Runner.Run(ctx, job, streams)
	r.remember(out.Made)
	r.report(job, out)
	return out, err
}

func (r *Runner) paths(root *os.Root, paths []string, own []sandbox.Folder) []string {
	all := slices.Clone(paths)
	for _, path := range slices.Concat(r.opts.Always, r.follow.Paths(root, paths, own)) {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

func (r *Runner) remember(made []sandbox.Folder) {
	if len(made) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = append(r.own, made...)
	r.own = slices.Clone(r.own[max(0, len(r.own)-maxOwn):])
}

// report adds the refused accesses of a program to the log and the audit.
func (r *Runner) report(job sandbox.Job, out sandbox.RunOutcome) {
	if len(out.Refused) == 0 {
		return
	}
	r.opts.Logger.Warn("refused a program access to protected files", "workspace", job.Root.Name(), "scope", job.Scope.String(), "paths", out.Refused)
	if r.opts.Audit == nil {
		return
	}
	args, _ := json.Marshal(map[string][]string{"paths": out.Refused}) // texts alone
	record := audit.Record{
		Tool: ToolName, Args: audit.Safe(args), Outcome: audit.OutcomeDenied, Code: codeDenied, Time: r.opts.Now(), Tier: out.Confinement.Tier,
	}
	record.Tenant, record.Agent = job.Scope.Tenant, job.Scope.Owner
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	if err := r.opts.Audit(ctx, record); err != nil {
		r.opts.Logger.Error("could not audit the refused accesses of a program", "tenant", record.Tenant, "agent", record.Agent, "paths", out.Refused, "error", err)
	}
}
