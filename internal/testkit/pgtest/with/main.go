// Command with runs a command together with its own PostgreSQL, which ends with it. The
// command finds the server's address in the environment variable LOOM_TEST_POSTGRES.
//
//	go run ./internal/testkit/pgtest/with go test ./memory
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
)

func main() {
	pgtest.Become()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "with: name the command to run with a PostgreSQL")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(exit.ExitCode())
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	server, err := pgtest.Start(nil)
	if err != nil {
		return err
	}
	defer server.Stop()
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(command.Environ(), pgtest.AddressEnv+"="+server.Address)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			_ = command.Process.Signal(s) // it may have ended
		}
	}()
	return command.Wait()
}
