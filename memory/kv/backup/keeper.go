package backup

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// DefaultEvery is the time between two backups.
	DefaultEvery = 24 * time.Hour
	// DefaultKeep is how many backups stay.
	DefaultKeep = 7
	// retryAfter is when a backup that failed is tried again, unless the next one is due
	// before.
	retryAfter = 10 * time.Minute
)

// KeeperOptions adjusts a Keeper. Zero fields mean the defaults.
type KeeperOptions struct {
	// Every is the time between two backups, across restarts; negative: backups are made
	// only on request. Default DefaultEvery.
	Every time.Duration
	// Keep is how many stay when one is made. Default DefaultKeep.
	Keep int
	// Logger logs each backup. Default silent.
	Logger *slog.Logger
}

// Keeper makes the backups of a server, when they are due and when somebody asks. All
// methods are safe for concurrent use.
type Keeper struct {
	folder  *Folder
	source  Origin
	options KeeperOptions
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	report Report // guarded by mu
}

// Report is what a Keeper has come to since it started.
type Report struct {
	// Last is the newest backup, also one of an earlier server; without a name there is none.
	Last Backup
	// Made and Failed are how many were made and how many failed.
	Made, Failed int
	// Problem is why the last one failed; nil if it did not.
	Problem error
	// Seconds is how long the last one took.
	Seconds float64
}

// StartKeeper begins to make backups. The store must outlive the Keeper, which Close ends.
func StartKeeper(folder *Folder, source Origin, o KeeperOptions) *Keeper {
	o.Every = cmp.Or(o.Every, DefaultEvery)
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{folder: folder, source: source, options: o, stop: stop, stopped: make(chan struct{})}
	all, err := folder.List()
	if err != nil {
		o.Logger.Error("some backups can't be read", "error", err)
	}
	if len(all) > 0 {
		k.report.Last = all[0]
	}
	go k.run(ctx)
	return k
}

// Close ends the backup under way and waits for that. Closing again is harmless.
func (k *Keeper) Close() error {
	k.stop()
	<-k.stopped
	return nil
}

// Report returns what the Keeper has come to.
func (k *Keeper) Report() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.report
}

// Folder is where the backups lie.
func (k *Keeper) Folder() *Folder { return k.folder }

func (k *Keeper) run(ctx context.Context) {
	defer close(k.stopped)
	if k.options.Every < 0 {
		return
	}
	for wait := k.due(); ; wait = k.due() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if k.due() > 0 {
			continue // somebody asked for one meanwhile
		}
		if _, err := k.Create(ctx, false, nil); err != nil && ctx.Err() == nil {
			select {
			case <-time.After(min(retryAfter, k.options.Every)):
			case <-ctx.Done():
				return
			}
		}
	}
}

// due is how long it is until the next backup.
func (k *Keeper) due() time.Duration {
	last := k.Report().Last.Time
	if last.IsZero() {
		return 0
	}
	return max(0, min(k.options.Every, time.Until(last.Add(k.options.Every))))
}

// Create makes a backup now; see Folder.Create.
func (k *Keeper) Create(ctx context.Context, full bool, progress func(done, total int64)) (Backup, error) {
	began := time.Now()
	made, err := k.folder.Create(ctx, k.source, Plan{Full: full, Keep: k.options.Keep, Progress: progress})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.report.Problem = err
	if err != nil {
		k.report.Failed++
		k.options.Logger.ErrorContext(ctx, "no backup was made", "error", err)
		return made, err
	}
	k.report.Last, k.report.Made, k.report.Seconds = made, k.report.Made+1, time.Since(began).Seconds()
	k.options.Logger.InfoContext(ctx, "a backup was made", "name", made.Name, "bytes", made.Bytes, "new_bytes", made.NewBytes, "seconds", k.report.Seconds)
	return made, nil
}
