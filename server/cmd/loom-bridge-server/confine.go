package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/native/script"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/everyday"
)

// openSandbox finds out how programs are confined here, and gives the tools that run
// them what they need. Without a tier they run none.
func openSandbox(ctx context.Context, config Config, runner *sandbox.Local, logger *slog.Logger) (sandbox.Confinement, native.ShellOptions, error) {
	c := runner.Describe(ctx)
	shell := native.ShellOptions{Runner: runner, Allow: config.Sandbox.Allow, ScriptCacheBytes: script.DefaultCacheBytes}
	if c.Tier == sandbox.TierLandlock {
		for _, name := range config.Policies.Names() {
			if p, _ := config.Policies.Profile(name); len(p.Hide) > 0 && !p.HideBestEffort {
				return c, shell, fmt.Errorf("settings file %s: profile.%s.hide: tier landlock, the only one that works here, hides nothing in a workspace from programs; remove it, or say hide_best_effort = true: file tools hide it all the same", config.File, name)
			}
		}
	}
	switch {
	case c.Tier != "":
	case config.Sandbox.Setting == string(sandbox.Require):
		return c, shell, &ConfigError{keySandbox, config.Sandbox.Setting, "nothing here confines a process: " + strings.Join(c.Problems, "; ")}
	default:
		shell.Runner, shell.Refused = nil, "no program runs, because nothing here confines it: "+strings.Join(c.Problems, "; ")
	}
	if c.Confined() {
		for _, problem := range c.Problems {
			logger.Info("a better tier of the sandbox is not to be had", "problem", problem)
		}
	} else {
		logger.Warn("programs are not confined", "sandbox", sandboxLine(c))
	}
	return c, shell, nil
}

// readPolicies reads the profiles and bindings of the settings file. No profile gives what is
// the server's own, and in the workspace none changes it.
func (c Config) readPolicies(path string, written []byte, getenv func(string) string) (*policy.Set, error) {
	o := policy.Options{Read: c.Sandbox.Read, AllowOff: c.Sandbox.AllowOff, Home: getenv("HOME"), Getenv: getenv}
	for _, own := range []string{c.DataDir, path, c.Credentials, c.TLSKey, c.Backups.Dir} {
		if own == "" {
			continue
		}
		place, err := filepath.Abs(own)
		if err != nil {
			return nil, err
		}
		o.Forbidden = append(o.Forbidden, place)
		workspace, err := filepath.Abs(c.Workspace)
		if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(workspace, place); err == nil && filepath.IsLocal(rel) && own != c.DataDir {
			o.Protect = append(o.Protect, rel)
		}
	}
	set, err := policy.Parse(path, written, &o)
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	for _, place := range c.Sandbox.Read {
		problem := set.Refuses(policy.Capability{Kind: policy.KindRead, Name: place})
		if !filepath.IsAbs(place) {
			problem = "is not absolute"
		}
		if problem != "" {
			return nil, &ConfigError{"sandbox-read", place, problem}
		}
	}
	return set, nil
}

func newRunner(config Config, logger *slog.Logger) *sandbox.Local {
	return sandbox.NewLocal(&sandbox.Options{
		Setting: sandbox.Setting(config.Sandbox.Setting), Tier: config.Sandbox.Tier, AllowOff: config.Sandbox.AllowOff, Logger: logger,
	})
}

// sandboxLine describes a confinement in a line.
func sandboxLine(c sandbox.Confinement) string {
	switch {
	case c.Confined():
		return "tier " + c.Tier + ": " + strings.Join(c.Layers, ", ")
	case c.Tier != "":
		return "off: programs can do everything that the server's user can"
	}
	return "none works here, so no program runs (loom-bridge-server doctor says why)"
}

// doctorCommand says what of the server works on this machine.
func doctorCommand(getenv func(string) string, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell which tier of the sandbox works here, its gaps, what can be done in it, the profiles and MCP servers",
		Args:  cobra.NoArgs,
	}
	take(cmd.Flags(), keyConfig, keyStore, "sandbox-tier", "mcp-servers", "workspace", "embedder", "embedder-url", "embedder-model", "shell-allow")
	jobs := cmd.Flags().Bool("jobs", true, "run everyday jobs in the tier that is used, and report which work")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := loadConfig(cmd.Flags(), getenv)
		if err != nil {
			return err
		}
		if err := config.programs(getenv); err != nil {
			return err
		}
		return doctor(cmd.Context(), config, *jobs, stdout)
	}
	return cmd
}

// doctor tries both tiers, and fails when the server would run no program.
func doctor(ctx context.Context, config Config, jobs bool, stdout io.Writer) error {
	var use sandbox.Runner // the one that confines
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		if config.Sandbox.Tier != sandbox.TierAuto && config.Sandbox.Tier != tier {
			continue
		}
		runner := sandbox.NewLocal(&sandbox.Options{Tier: tier})
		defer runner.Close()
		c := runner.Describe(ctx)
		if !c.Confined() {
			fmt.Fprintf(stdout, "tier %s: does not work here\n", tier)
			for _, problem := range c.Problems {
				fmt.Fprintf(stdout, "  %s\n", problem)
			}
			continue
		}
		used := ""
		if use == nil {
			used, use = " (used)", runner
		}
		fmt.Fprintf(stdout, "tier %s: works%s\n  layers: %s\n", tier, used, strings.Join(c.Layers, ", "))
		if c.LandlockABI > 0 {
			fmt.Fprintf(stdout, "  Landlock: version %d\n", c.LandlockABI)
		}
		for _, gap := range c.Gaps {
			fmt.Fprintf(stdout, "  not kept from: %s\n", gap)
		}
		if jobs && used != "" {
			tellJobs(ctx, runner, config.Sandbox.Allow, stdout)
		}
	}
	if use != nil {
		fmt.Fprintf(stdout, "programs that calls may run: %s\n", programsLine(config.Sandbox.Allow))
	}
	tellPolicies(config.Policies, stdout)
	config.tellStore(ctx, stdout)
	config.tellEmbedder(ctx, stdout)
	if err := config.tellServers(ctx, use, stdout); err != nil {
		return err
	}
	if use == nil {
		return fmt.Errorf("no tier of the sandbox works here: the server runs no programs for tools, unless --%s off", keySandbox)
	}
	return nil
}

// programsLine says which programs a setting lets through.
func programsLine(allow []string) string {
	switch {
	case slices.Contains(allow, native.AllPrograms):
		return "all (--shell-allow)"
	case len(allow) > 0:
		return "only " + strings.Join(allow, ", ") + " (--shell-allow)"
	}
	return "all, since they are confined; agents of loom.v1 only " + strings.Join(native.Commands(), ", ")
}

// tellPolicies describes the profiles, and of which calls have which.
func tellPolicies(set *policy.Set, stdout io.Writer) {
	for _, name := range set.Names() {
		p, _ := set.Profile(name)
		fmt.Fprintf(stdout, "profile %s: mode %s\n", name, p.Mode)
	}
	for _, b := range set.Bindings() {
		fmt.Fprintf(stdout, "binding: tenant %q, agent %q, tool %q: profile %q, approval %q\n", b.Tenant, b.Agent, b.Tool, b.Profile, b.Approval)
	}
}

// tellJobs does everyday jobs and says which of them work, and which of those a call may do.
func tellJobs(ctx context.Context, runner sandbox.Runner, allow []string, stdout io.Writer) {
	all := everyday.Jobs()
	var lines []string
	work := 0
	for _, j := range all {
		said := "works"
		refused := native.Permits(allow, j.Script())
		switch err := j.Try(ctx, runner); {
		case err == nil && refused != nil:
			said = "works, but no call may do it: " + refused.Error()
		case err == nil:
			work++
		case errors.Is(err, everyday.ErrNoProgram):
			said = "was not tried: the program is not here"
		case j.Socket:
			said = "does not work: it needs sockets, terminals or shared memory"
		default:
			said = "does not work: " + err.Error()
		}
		lines = append(lines, fmt.Sprintf("    %s: %s\n", j.Name, said))
	}
	fmt.Fprintf(stdout, "  everyday jobs: %d of %d work\n%s", work, len(all), strings.Join(lines, ""))
}
