package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/backups"
)

// Scrub is how a running server reads its store back.
type Scrub struct {
	// Interval is the time between the beginnings of two readings; less than 0 never reads.
	Interval time.Duration
	// Rate is how many bytes are read in a second.
	Rate int
}

// Backups is how copies of the store are made.
type Backups struct {
	// Dir is where they lie; empty for none.
	Dir string
	// Interval is the time between two; less than 0 makes only those that are asked for.
	Interval time.Duration
	// Keep is how many stay.
	Keep int
}

// checkBackups refuses a folder that tools could read, and one that would be copied itself.
func (c Config) checkBackups() error {
	switch {
	case c.Backups.Dir == "":
		return nil
	case c.Ephemeral:
		return &ConfigError{keyBackupDir, c.Backups.Dir, "means nothing with --ephemeral"}
	}
	return errors.Join(c.backupsOutside(keyDataDir, c.DataDir), c.backupsOutside("workspace", c.Workspace))
}

func (c Config) backupsOutside(name, place string) error {
	if !inside(c.Backups.Dir, place) {
		return nil
	}
	return &ConfigError{keyBackupDir, c.Backups.Dir, "lies inside of --" + name + " (" + absolute(place) + "); give a directory beside it"}
}

// inside tells whether a place is another one or lies in it.
func inside(place, other string) bool {
	rel, err := filepath.Rel(followed(other), followed(place))
	return err == nil && filepath.IsLocal(rel)
}

// followed is a place without links, as far as it is there.
func followed(place string) string {
	place = absolute(place)
	for at, rest := place, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		if at == filepath.Dir(at) {
			return place
		}
	}
}

// source is the store of a server as backups are made of it.
func (c Config) source(engine kv.Checkpointer) backup.Source {
	return backup.Source{Engine: engine, Staging: filepath.Join(c.DataDir, "backup"), StoreFormat: kv.Format, Version: buildVersion()}
}

// startBackups begins to make backups, if there is a folder for them; else there is none.
func startBackups(config Config, engine kv.Checkpointer, logger *slog.Logger, opened *closers) (*backup.Keeper, error) {
	if config.Backups.Dir == "" {
		return nil, nil
	}
	folder, err := backup.Open(config.Backups.Dir)
	if err != nil {
		return nil, &ConfigError{keyBackupDir, config.Backups.Dir, err.Error()}
	}
	keeper := backup.StartKeeper(folder, config.source(engine), backup.KeeperOptions{
		Every: config.Backups.Interval, Keep: config.Backups.Keep, Logger: logger,
	})
	opened.add(keeper.Close)
	return keeper, nil
}

// backupCommand makes and restores copies of a store.
func backupCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env}
	progress := newProgressLine(stderr)
	var command *cobra.Command
	load := func() (Config, error) { return loadConfig(command.PersistentFlags(), env.get) }
	folder := func() (*backup.Folder, error) {
		config, err := load()
		if err != nil {
			return nil, err
		}
		if config.Backups.Dir == "" {
			return nil, &ConfigError{keyBackupDir, "", "is required: where the backups lie"}
		}
		found, err := backup.Existing(config.Backups.Dir)
		if err != nil {
			return nil, &ConfigError{keyBackupDir, config.Backups.Dir, err.Error()}
		}
		return found, nil
	}
	command = backups.Command(backups.Options{
		Out: stdout, Folder: folder,
		Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, error) { return s.connect(ctx, load) },
		DataDir: func() (string, error) {
			config, err := load()
			return config.DataDir, err
		},
		Local: func(ctx context.Context, full bool, show func(done, total int64)) (backup.Backup, error) {
			config, err := load()
			if err != nil {
				return backup.Backup{}, err
			}
			return backUp(ctx, config, backup.Plan{Full: full, Progress: show})
		},
		Check: func(ctx context.Context, dir string) error {
			config, err := load()
			if err != nil {
				return err
			}
			config.DataDir = dir
			return check(ctx, config, stdout, stderr)
		},
		Progress: func(done, total int64) {
			progress.show("%d of %d MiB", done>>20, total>>20)
			if done >= total {
				progress.clear()
			}
		},
	})
	settings := configFlags()
	for _, name := range []string{keyConfig, keyBackupDir, keyDataDir, "addr"} {
		command.PersistentFlags().AddFlag(settings.Lookup(name))
	}
	command.PersistentFlags().StringVar(&s.authority, "server-ca", "", "PEM `file` of authorities: the server is spoken to over TLS; "+envToken+" is the token")
	return command
}

// backUp makes a backup of a store that no server has open.
func backUp(ctx context.Context, config Config, p backup.Plan) (made backup.Backup, err error) {
	if err := config.hasStore(); err != nil {
		return made, err
	}
	if config.Backups.Dir == "" {
		return made, &ConfigError{keyBackupDir, "", "is required: where the backup goes"}
	}
	if err := config.backupsOutside(keyDataDir, config.DataDir); err != nil {
		return made, err
	}
	folder, err := backup.Open(config.Backups.Dir)
	if err != nil {
		return made, &ConfigError{keyBackupDir, config.Backups.Dir, err.Error()}
	}
	engine, err := openStore(config)
	if err != nil {
		return made, nameHolder(config.DataDir, err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return folder.Create(ctx, config.source(engine), p)
}

// startScrub begins to read the store back, unless the settings say never. What it
// has come to is told by the returned function.
func startScrub(config Config, engine kv.Engine, logger *slog.Logger, opened *closers) func() integrity.Report {
	if config.Scrub.Interval < 0 {
		return func() integrity.Report { return integrity.Report{} }
	}
	scrub := integrity.StartScrub(engine, &integrity.ScrubOptions{
		Every: config.Scrub.Interval, BytesPerSecond: int64(config.Scrub.Rate), Logger: logger,
	})
	opened.add(scrub.Close)
	return scrub.Report
}

// logHealth writes a line whenever the store's condition changes.
func logHealth(health *kv.Health, logger *slog.Logger, opened *closers) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for known := ""; ; {
			condition, changed := health.Condition()
			switch text := condition.String(); {
			case text != "ok":
				logger.Error("the store is not well", "condition", text)
				known = text
			case known != "":
				logger.Info("the store is well again")
				known = ""
			}
			select {
			case <-changed:
			case <-stop:
				return
			}
		}
	}()
	opened.add(func() error {
		close(stop)
		<-stopped
		return nil
	})
}

// storeMetrics shows how the store is.
type storeMetrics struct {
	health *kv.Health
	scrub  func() integrity.Report
	writable, damaged,
	passes, bytes, findings, last *prometheus.Desc
}

func newStoreMetrics(health *kv.Health, scrub func() integrity.Report) *storeMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_store_"+name, help, labels, nil)
	}
	return &storeMetrics{
		health: health, scrub: scrub,
		writable: desc("writable", "1 while writes can succeed, 0 while they can't."),
		damaged:  desc("damaged", "1 while something is known to be damaged, by keyspace; store stands for what belongs to all.", "keyspace"),
		passes:   desc("scrub_passes_total", "How often the whole store was read back."),
		bytes:    desc("scrub_bytes_total", "Bytes that were read for it."),
		findings: desc("scrub_findings", "What the last such reading found damaged."),
		last:     desc("scrub_last_end_seconds", "When it ended, in seconds since 1970; 0 for never."),
	}
}

// Describe is prometheus.Collector's.
func (m *storeMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is prometheus.Collector's.
func (m *storeMetrics) Collect(to chan<- prometheus.Metric) {
	condition, _ := m.health.Condition()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.writable, oneIf(condition.Failed == nil))
	for _, ks := range append(kv.Keyspaces(), kv.WholeStore) {
		gauge(m.damaged, oneIf(condition.Damaged[ks] != nil), ks.String())
	}
	report, last := m.scrub(), 0.0
	if !report.End.IsZero() {
		last = float64(report.End.UnixMilli()) / 1000
	}
	to <- prometheus.MustNewConstMetric(m.passes, prometheus.CounterValue, float64(report.Passes))
	to <- prometheus.MustNewConstMetric(m.bytes, prometheus.CounterValue, float64(report.Bytes))
	gauge(m.findings, float64(report.Damaged))
	gauge(m.last, last)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// watchBackups adds the figures about backups, if any are made.
func (m metrics) watchBackups(keeper *backup.Keeper) {
	if m.registry != nil && keeper != nil {
		m.registry.MustRegister(newBackupMetrics(keeper))
	}
}

// backupMetrics shows how the backups go.
type backupMetrics struct {
	keeper                                      *backup.Keeper
	made, failed, last, seconds, bytes, renewed *prometheus.Desc
}

func newBackupMetrics(keeper *backup.Keeper) *backupMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_backup_"+name, help, nil, nil)
	}
	return &backupMetrics{
		keeper:  keeper,
		made:    desc("made_total", "Backups that were made."),
		failed:  desc("failed_total", "Backups that failed."),
		last:    desc("last_seconds", "When the newest backup was begun, in seconds since 1970; 0 for none."),
		seconds: desc("duration_seconds", "How long the last backup took; 0 if this server has made none."),
		bytes:   desc("bytes", "Size of the newest backup."),
		renewed: desc("new_bytes", "Size of what the newest backup has that the one before had not."),
	}
}

// Describe is prometheus.Collector's.
func (m *backupMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is prometheus.Collector's.
func (m *backupMetrics) Collect(to chan<- prometheus.Metric) {
	r, last := m.keeper.Report(), 0.0
	if !r.Last.Time.IsZero() {
		last = float64(r.Last.Time.UnixMilli()) / 1000
	}
	for desc, value := range map[*prometheus.Desc]float64{m.made: float64(r.Made), m.failed: float64(r.Failed)} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value)
	}
	for desc, value := range map[*prometheus.Desc]float64{
		m.last: last, m.seconds: r.Seconds, m.bytes: float64(r.Last.Bytes), m.renewed: float64(r.Last.NewBytes),
	} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
