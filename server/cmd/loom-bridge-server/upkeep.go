package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
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
	inside, err := paths.Within(c.Backups.Dir, place)
	if err != nil {
		return &ConfigError{keyBackupDir, c.Backups.Dir, err.Error()}
	}
	if !inside {
		return nil
	}
	return &ConfigError{keyBackupDir, c.Backups.Dir, "lies inside of --" + name + " (" + absolute(place) + "); give a directory beside it"}
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
