package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	localHelp = `Serve the program that starts this, until that closes standard input or ends. The first line on
standard output is "listening on" and the address.

All programs and hosts that work on one data directory share a server: it is one that runs
already, or else the first of them starts it, and the next takes over. A server that is
started without a command is found as well.`

	localExamples = `  loom-bridge-server local
  loom-bridge-server local --data-dir ./.loom/store --workspace .`
)

// localCommand is a server for the program that starts it.
func localCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	command := &cobra.Command{
		Use: "local", Short: "Serve the program that starts this, and end with it",
		Long: localHelp, Example: localExamples, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.configure(cmd, ""); err != nil {
				return err
			}
			if err := s.config.programs(env.get); err != nil {
				return err
			}
			if s.config.LogLevel == NewConfig().LogLevel {
				s.config.LogLevel = "warn" // standard error is the program's
			}
			return s.with(cmd.Context(), s.accompany)
		},
	}
	command.Flags().AddFlagSet(configFlags())
	return command
}

// accompany says where the server is, once it answers, and waits for the program's end.
func (s *shim) accompany(ctx context.Context, conn *grpc.ClientConn) error {
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.stdout, "listening on", s.config.Addr); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, s.stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
