package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// errCheckFailed: the check found something.
var errCheckFailed = errors.New("check failed")

// checkCommand is the sub-command that compares the index with the records.
func checkCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use:   "check",
		Short: "Compare the memory index of every owner with its records",
		Long: "Compare the memory index of every owner with its records. No server may be\n" +
			"running on the data directory. The exit status is 1 when something differs.\n" +
			"An index that was made in another language is made anew first.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd.Flags(), getenv)
			if err != nil {
				return err
			}
			return check(cmd.Context(), config, stdout)
		},
	}
	all := configFlags()
	command.Flags().AddFlag(all.Lookup(keyConfig))
	command.Flags().AddFlag(all.Lookup("data-dir"))
	command.Flags().AddFlag(all.Lookup(keyMemoryLanguage))
	return command
}

func check(ctx context.Context, config Config, stdout io.Writer) (err error) {
	if _, err := os.Stat(config.DataDir); err != nil {
		return &ConfigError{"data-dir", config.DataDir, "there is no store: " + err.Error()}
	}
	var opened closers
	defer func() { err = errors.Join(err, opened.close()) }()
	language, err := config.language()
	if err != nil {
		return err
	}
	engine, err := openStore(config)
	if err != nil {
		return err
	}
	opened.add(engine.Close)
	writer := kv.NewWriter(engine, nil)
	opened.add(writer.Close)
	memories := memory.New(engine, writer, &memory.Options{Language: language})
	opened.add(memories.Close)
	return checkScopes(ctx, engine, memories, stdout)
}

func checkScopes(ctx context.Context, engine kv.Reader, memories *memory.Store, stdout io.Writer) error {
	good, bad := 0, 0
	for scope, err := range scopes(ctx, engine, kv.Records) {
		if err == nil {
			err = memories.Check(ctx, scope)
		}
		if err != nil && !errors.Is(err, memory.ErrMismatch) && !errors.Is(err, memory.ErrDamaged) {
			return fmt.Errorf("check %s: %w", scope, err)
		}
		if err == nil {
			good++
			continue
		}
		bad++
		if _, err := fmt.Fprintf(stdout, "%s: %v\n", scope, err); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(stdout, "checked %d owners: %d good, %d bad\n", good+bad, good, bad); err != nil {
		return err
	}
	if bad > 0 {
		return errCheckFailed
	}
	return nil
}

// scopes yields every scope that has a key in a keyspace, in order. It reads
// one key of each.
func scopes(ctx context.Context, from kv.Reader, ks kv.Keyspace) iter.Seq2[kv.Scope, error] {
	return func(yield func(kv.Scope, error) bool) {
		var next []byte
		for {
			scope, found, err := firstScope(ctx, from, ks, next)
			if err != nil {
				yield(kv.Scope{}, err)
				return
			}
			if !found || !yield(scope, nil) {
				return
			}
			if next = kv.After(scope.AppendPrefix(nil)); next == nil {
				return
			}
		}
	}
}

func firstScope(ctx context.Context, from kv.Reader, ks kv.Keyspace, start []byte) (scope kv.Scope, found bool, err error) {
	for pair, err := range from.Scan(ctx, ks, kv.Range{Start: start, Limit: 1}) {
		if err != nil {
			return kv.Scope{}, false, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		return scope, err == nil, err
	}
	return kv.Scope{}, false, nil
}
