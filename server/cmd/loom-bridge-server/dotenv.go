package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joho/godotenv"
)

const (
	// dotenvName is the file of variables beside a project.
	dotenvName = ".env"
	// maxDotenvBytes bounds it: what is longer is no file of settings.
	maxDotenvBytes = 1 << 20
)

// fromDotenv are the settings of the server's own that a .env file may hold. The
// file may lie in the workspace, where agents write: what decides how far they
// reach, who may call and where things are stored comes from elsewhere.
var fromDotenv = []string{envName("addr"), envName(keyLogLevel)}

// withDotenv returns what lookup finds, and behind it the variables of the nearest .env
// file in dir or above: what the environment says already wins, also an
// empty value. The
// environment of the process stays as it is. An error tells what of the
// file is left out: it belongs to the project, not to the server.
func withDotenv(lookup func(string) (string, bool), dir string) (func(string) string, error) {
	values, err := readDotenv(dir)
	return func(name string) string {
		if value, ok := lookup(name); ok {
			return value
		}
		return values[name]
	}, err
}

func readDotenv(dir string) (map[string]string, error) {
	for {
		path := filepath.Join(dir, dotenvName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return parseDotenv(path)
		}
		above := filepath.Dir(dir)
		if above == dir {
			return nil, nil
		}
		dir = above
	}
}

func parseDotenv(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ignored: %w", err)
	}
	defer file.Close()
	values, err := godotenv.Parse(io.LimitReader(file, maxDotenvBytes))
	if err != nil {
		// The library's error quotes the file, which may hold keys.
		return nil, fmt.Errorf("ignored %s: it is not a file of NAME=value lines", path)
	}
	var refused []string
	for name := range values {
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(fromDotenv, name) {
			refused = append(refused, name)
			delete(values, name)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		return values, fmt.Errorf("ignored %s of %s, where agents might write it; use the environment, a flag or --config",
			strings.Join(refused, ", "), path)
	}
	return values, nil
}
