//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// process is a server started for the benchmark.
type process struct {
	command *exec.Cmd
	addr    string
}

// start runs a program that prints `listening on ADDR` and waits for that line.
func start(ctx context.Context, program string, args ...string) (*process, error) {
	return startTo(ctx, os.Stderr, program, args...)
}

// startTo is start for a program whose log goes elsewhere.
func startTo(ctx context.Context, log *os.File, program string, args ...string) (*process, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", program, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			return &process{command, strings.TrimSpace(addr)}, nil
		}
	}
	return nil, fmt.Errorf("bench: %s ended before it listened: %w", program, command.Wait())
}

// stop ends the program and waits for it.
func (p *process) stop() {
	p.command.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended already
	p.command.Wait()                          //nolint:errcheck // its exit code means nothing here
}
