package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// Scrub is how a running server reads its store back.
type Scrub struct {
	// Rate is how many bytes are read in a second; 0 never reads.
	Rate int
	// Interval is the time between the beginnings of two readings. No setting: 0 for the
	// default.
	Interval time.Duration
}

// Backups is how copies of the store are made.
type Backups struct {
	// Dir is where they lie; empty for none.
	Dir string
	// Interval is the time between two backups; below 0 backups are made only on request.
	Interval time.Duration
	// Keep is how many stay.
	Keep int
}

// checkBackups refuses a folder that would be copied itself.
func (c Config) checkBackups() error {
	switch {
	case c.Backups.Dir == "":
		return nil
	case c.Store.Far():
		return &ConfigError{keyBackupDir, c.Backups.Dir, "means nothing with a store in PostgreSQL: " + ownBackups}
	case c.Ephemeral:
		return &ConfigError{keyBackupDir, c.Backups.Dir, "means nothing with --ephemeral"}
	}
	return c.backupsOutside(keyDataDir, c.DataDir)
}

// checkServedBackups is checkBackups for a server: it refuses a folder that its tools could
// read, too. A command has no workspace, whatever folder it is typed in.
func (c Config) checkServedBackups() error {
	if err := c.checkBackups(); err != nil || c.Backups.Dir == "" {
		return err
	}
	return c.backupsOutside("workspace", c.Workspace)
}

func (c Config) backupsOutside(name, place string) error {
	inside, err := paths.Within(c.Backups.Dir, place)
	if err != nil {
		return &ConfigError{keyBackupDir, c.Backups.Dir, err.Error()}
	}
	if !inside {
		return nil
	}
	return &ConfigError{keyBackupDir, c.Backups.Dir, "is inside --" + name + " (" + absolute(place) + "); give a directory outside it"}
}

// source is the store of a server as backups are made of it.
func (c Config) source(engine kv.Checkpointer) backup.Origin {
	return backup.Origin{Engine: engine, Staging: filepath.Join(c.DataDir, "backup"), StoreFormat: kv.Format, Version: buildVersion()}
}

// startBackups begins to make backups, if there is a folder for them; else there is none.
func startBackups(config Config, engine kv.Engine, logger *slog.Logger, opened *closers) (*backup.Keeper, error) {
	copied, ok := engine.(kv.Checkpointer)
	if config.Backups.Dir == "" || !ok {
		return nil, nil
	}
	folder, err := backup.Open(config.Backups.Dir)
	if err != nil {
		return nil, &ConfigError{keyBackupDir, config.Backups.Dir, err.Error()}
	}
	keeper := backup.StartKeeper(folder, config.source(copied), backup.KeeperOptions{
		Every: config.Backups.Interval, Keep: config.Backups.Keep, Logger: logger,
	})
	opened.add(keeper.Close)
	return keeper, nil
}

// backUp makes a backup of a store that no server has open.
func backUp(ctx context.Context, config Config, p backup.Plan) (made backup.Backup, err error) {
	if _, err := config.files(ownBackups); err != nil {
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
	engine, err := config.openStore(ctx, nil)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	copied, ok := engine.(kv.Checkpointer)
	if !ok {
		return made, fmt.Errorf("%w: %s", stores.ErrNoFiles, ownBackups)
	}
	return folder.Create(ctx, config.source(copied), p)
}

// storePlace is the setting of where the store is.
func (c *Config) storePlace() field {
	return scalar[stores.Place]{to: &c.Store, name: "address", parse: func(text string) (stores.Place, error) {
		if text == "" {
			return stores.Place{}, nil
		}
		return stores.Parse(text)
	}, print: stores.Place.String}
}

// checkStore refuses two places for one store.
func (c Config) checkStore() error {
	place := c.Store.String()
	switch {
	case place == "":
		return nil
	case c.Ephemeral:
		return &ConfigError{keyStore, place, "means nothing with --ephemeral"}
	case !c.Store.Far() && c.DataDir != NewConfig().DataDir && c.DataDir != c.Store.Dir:
		return &ConfigError{keyStore, place, "is another directory than --" + keyDataDir + " (" + c.DataDir + "); give one of them"}
	}
	return nil
}

// place is where the store is.
func (c Config) place() stores.Place {
	if c.Store.Far() {
		return c.Store
	}
	return stores.Place{Dir: c.DataDir}
}

// What else to do with a store in PostgreSQL.
const (
	ownBackups = "back up its database, as with pg_basebackup or pg_dump"
	ownFiles   = "it looks after its files itself"
)

// files is the directory of a store that is there; for one in PostgreSQL the error says what
// to use instead.
func (c Config) files(instead string) (string, error) {
	dir, err := c.place().Files(instead)
	if err != nil {
		return "", fmt.Errorf("--%s (%s): %w", keyStore, envName(keyStore), err)
	}
	return dir, c.hasStore()
}

// openStore opens the store for this process alone.
func (c Config) openStore(ctx context.Context, logger *slog.Logger) (stores.Engine, error) {
	return c.takeStore(ctx, stores.Options{Logger: logger}, stores.Place.Open)
}

// joinStore opens the store for a server that serves at an address.
func (c Config) joinStore(ctx context.Context, address string, logger *slog.Logger) (stores.Engine, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := stores.Options{
		Name: cmp.Or(c.BridgeName, fmt.Sprintf("%s-%d", host, os.Getpid())), Address: cmp.Or(c.BridgeAddr, reachable(address, host)), Logger: logger,
	}
	if !c.WorkspaceShared {
		folder, err := filepath.Abs(c.Workspace)
		if err != nil {
			return nil, &ConfigError{"workspace", c.Workspace, err.Error()}
		}
		o.Workspace = cmp.Or(c.BridgeName, host) + ":" + folder
	}
	engine, err := c.takeStore(ctx, o, stores.Place.Join)
	if errors.Is(err, registry.ErrInvalid) { // the address is checked already
		return nil, &ConfigError{keyBridgeName, c.BridgeName, err.Error()}
	}
	if errors.Is(err, stores.ErrMixed) {
		return nil, &ConfigError{keyWorkspaceShared, fmt.Sprint(c.WorkspaceShared), err.Error()}
	}
	return engine, err
}

// reachable returns the address by which others reach a served address: an address without
// a host gets this machine's name.
func reachable(address, host string) string {
	at, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(at); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	return net.JoinHostPort(host, port)
}

// takeStore opens the store by open.
func (c Config) takeStore(ctx context.Context, o stores.Options, open func(stores.Place, context.Context, stores.Options) (stores.Engine, error)) (stores.Engine, error) {
	// With a store elsewhere it holds what is this machine's alone.
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, &ConfigError{keyDataDir, c.DataDir, err.Error()}
	}
	c.unversion()
	o.Durability, o.Wait = c.Durability, c.StoreWait
	engine, err := open(c.place(), ctx, o)
	if err != nil {
		return nil, c.storeError(err)
	}
	return engine, nil
}

// readStore opens the store for reading alone.
func (c Config) readStore(ctx context.Context) (stores.Engine, error) {
	engine, err := c.place().OpenReadOnly(ctx)
	if err != nil {
		return nil, c.storeError(err)
	}
	return engine, nil
}

// tellStore says whether a store in PostgreSQL is there.
func (c Config) tellStore(ctx context.Context, out io.Writer) {
	if !c.Store.Far() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorServers)
	defer cancel()
	said := "answers"
	switch engine, err := c.Store.OpenReadOnly(ctx); {
	case errors.Is(err, kv.ErrForeign):
		said = "answers: " + err.Error() + "; a server makes one where the schema is empty"
	case err != nil:
		said = err.Error()
	default:
		said += ", and holds a store"
		_ = engine.Close() // nothing was written
	}
	fmt.Fprintf(out, "store %s: %s\n", c.Store, said)
}

// startScrub begins to read the store back, unless the settings say never. What it
// has come to is read by the returned function.
func startScrub(config Config, engine kv.Engine, logger *slog.Logger, opened *closers) func() integrity.Report {
	if config.Scrub.Rate == 0 {
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

// unversion keeps the default directory of a project out of its repository, with what else is in
// .loom, but for the rules of its sandbox. A file that is there already stays.
func (c Config) unversion() {
	above := filepath.Dir(c.DataDir)
	if filepath.Base(above) != ".loom" {
		return
	}
	if f, err := os.OpenFile(filepath.Join(above, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_, _ = f.WriteString("*\n!sandbox.toml\n") // without it, git shows what it need not
		_ = f.Close()
	}
}
