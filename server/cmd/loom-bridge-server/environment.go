package main

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
)

const (
	// dotenvName is the file of variables in a project's folder.
	dotenvName = ".env"
	// maxDotenvBytes bounds it: what is longer is no file of settings.
	maxDotenvBytes = 1 << 20
)

// environment is where variables come from. The zero value has none.
type environment struct {
	// vars are the process's variables. They override every file, even when empty.
	vars map[string]string
	// dir is where the search for .env files begins. Empty: none is read.
	dir string
	// ignored is what of the files was left out, for the log.
	ignored []ignoredLines
}

// ignoredLines are lines of a .env file that were left out, and why.
type ignoredLines struct {
	path, why string
	names     []string // none for a file that could not be read
}

// processEnvironment is the environment of the process, with .env files from dir
// upwards.
func processEnvironment(vars []string, dir string) environment {
	e := environment{vars: make(map[string]string, len(vars)), dir: dir}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		e.vars[name] = value
	}
	return e
}

func (e environment) get(name string) string { return e.vars[name] }

// fromDotenv are the server's own settings that a .env file may hold: not how far
// agents reach, who may call, and where things are stored.
var fromDotenv = []string{envName("addr"), envName(keyLogLevel), rustLog}

// withDotenv returns the environment with the variables of .env files behind it.
// Agents write in the workspace: a file in there decides nothing about the server,
// whose settings come from the nearest file outside. All other variables come from
// the nearest file wherever it lies.
func (e environment) withDotenv(workspace string) environment {
	merged := environment{vars: map[string]string{}}
	first := true
	for dir := e.dir; dir != ""; dir = above(dir) {
		path := filepath.Join(dir, dotenvName)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		inside, err := paths.Within(path, workspace)
		inside = inside || err != nil
		values, err := parseDotenv(path)
		if err != nil {
			merged.ignored = append(merged.ignored, ignoredLines{path: path, why: err.Error()})
		}
		merged.take(path, values, inside, first)
		first = false
		if !inside {
			break
		}
	}
	maps.Copy(merged.vars, e.vars)
	return merged
}

// above is the directory that holds dir; empty for the root.
func above(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

// take adds what counts of a file.
func (e *environment) take(path string, values map[string]string, inside, first bool) {
	var refused []string
	for name, value := range values {
		own := strings.HasPrefix(name, envPrefix) || name == rustLog || strings.HasPrefix(name, envDashboard)
		switch {
		case own && (inside || !slices.Contains(fromDotenv, name)), inside && leads(name):
			refused = append(refused, name)
		case own || first:
			e.vars[name] = value
		}
	}
	if len(refused) == 0 {
		return
	}
	slices.Sort(refused)
	why := "a .env file decides only " + strings.Join(fromDotenv, ", ") + "; use the environment, a flag or --config"
	if inside {
		why = "agents can write the file: it lies in the workspace; use the environment, a flag or --config"
	}
	e.ignored = append(e.ignored, ignoredLines{path: path, why: why, names: refused})
}

func parseDotenv(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	values, err := godotenv.Parse(io.LimitReader(file, maxDotenvBytes))
	if err != nil {
		// The library's error quotes the file, which may hold keys.
		return nil, errors.New("it is not a file of NAME=value lines")
	}
	return values, nil
}

// warn logs once what the environment asks for and is not served, and what of it
// is ignored.
func (e environment) warn(logger *slog.Logger, otel bool) {
	// Not an error, and not for agents: `loom run` sets it in every run. Its value may hold keys.
	if e.vars["OTEL_EXPORTER_OTLP_ENDPOINT"] != "" && !otel {
		logger.Info("OTEL_EXPORTER_OTLP_ENDPOINT is set, but without --otel no telemetry is exported")
	}
	for _, i := range e.ignored {
		logger.Warn("ignored in a .env file", "file", i.path, "variables", strings.Join(i.names, ", "), "why", i.why)
	}
	wrong := e.misspelt()
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		logger.Warn("a variable is ignored: no setting has its name", "variable", name, "nearest", wrong[name])
	}
}

// misspelt returns the variables that look like settings and are none, each with
// the nearest that is one. They are reported, not refused: they may be meant for something
// else, as Kubernetes sets some next to a service called loom-bridge.
func (e environment) misspelt() map[string]string {
	known := settingNames()
	found := map[string]string{}
	for name, value := range e.vars {
		bare, ours := strings.CutPrefix(name, envPrefix)
		if !ours || value == "" || name == envServerBinary {
			continue
		}
		bare = strings.ToLower(strings.ReplaceAll(bare, "_", "-"))
		if !slices.Contains(known, bare) {
			found[name] = envName(text.Nearest(bare, known))
		}
	}
	return found
}

// envServerBinary is the one other name with the prefix: where clients that start
// a server find it.
const envServerBinary = envPrefix + "SERVER"
