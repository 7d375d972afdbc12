// Command loom-bridge-server is the one process of Loom Bridge: it opens the
// store, builds everything on top of it and serves gRPC until it gets a signal to stop. Run
// it with --help for its flags; without any it serves on 127.0.0.1:50051.
//
// Its files: main.go is the entry, commands.go the table of commands, run.go the wiring in the
// order things are built, settings.go the table of settings, fields.go what a value may be,
// config.go the values together, load.go and environment.go where they come from, help.go how
// they are shown. Commands of their own nouns lie in the folders beside.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/garbage"
)

func main() {
	// A reader of our output that went away must not end the server.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains; a second one finds the default, which kills.
	context.AfterFunc(ctx, stop)
	err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "loom-bridge-server:", worded(err))
		os.Exit(exitStatus(err, os.Args[1:]))
	}
}

// usageError is a command line that can't be followed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// unreachableError: no server answers.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// The statuses with which commands end that failed, for scripts.
const (
	exitFailed = 1 + iota
	exitUsage
	exitNotFound
	exitDenied
	exitUnavailable
)

// exitStatus is that of a command line which ended with an error. Of a hook it is always
// exitFailed: its hosts take exitUsage for a no to what they were about to do.
func exitStatus(err error, args []string) int {
	if len(args) > 0 && args[0] == "hook" {
		return exitFailed
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[unreachableError](err); ok {
		return exitUnavailable
	}
	switch status.Code(err) {
	case codes.NotFound:
		return exitNotFound
	case codes.PermissionDenied, codes.Unauthenticated:
		return exitDenied
	case codes.Unavailable:
		return exitUnavailable
	}
	return exitFailed
}

// worded is an error as people read it: what a server answered with its own words first.
func worded(err error) string {
	answered, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return err.Error()
	}
	s := answered.GRPCStatus()
	said := strings.Replace(err.Error(), answered.Error(), fmt.Sprintf("%s (%v)", s.Message(), s.Code()), 1)
	switch s.Code() {
	case codes.Unauthenticated:
		return said + "; this command takes the token from " + envToken
	case codes.PermissionDenied:
		if strings.Contains(s.Message(), strings.TrimPrefix(auth.ErrAgentNotOwned.Error(), "server: ")) {
			return said + "; --agent names one of the credential's"
		}
	}
	return said
}

// start runs the program in the environment of the process.
func start(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		garbage.Collect()
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("current directory: %w", err)
	}
	return run(ctx, os.Args[1:], processEnvironment(os.Environ(), dir), os.Stdout, os.Stderr)
}

// version is set by -ldflags "-X main.version=1.2.3", which make does.
var version string

// developmentVersion is what a build calls itself without a version.
const developmentVersion = "0.0.0-dev"

// revisionDigits of the commit are enough to find it.
const revisionDigits = 12

// buildVersion is the version of this build: X.Y.Z, and for a development
// build the commit it was made from.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return developmentVersion
	}
	return developmentVersion + revision(info.Settings)
}

func revision(settings []debug.BuildSetting) string {
	var commit, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), revisionDigits)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return "+" + commit + dirty
}
