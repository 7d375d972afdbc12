package policy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// rawProfile is a profile as a file has it. Pointers are nil where a key is missing.
type rawProfile struct {
	Extends        string            `toml:"extends"`
	Mode           *string           `toml:"mode"`
	Read           []string          `toml:"read"`
	Write          []string          `toml:"write"`
	Protect        []string          `toml:"protect"`
	Hide           []string          `toml:"hide"`
	HideBestEffort *bool             `toml:"hide_best_effort"`
	Allow          []allow           `toml:"allow"`
	Environment    map[string]string `toml:"environment"`
	Limits         *limits           `toml:"limits"`
}

type allow struct {
	Host    string   `toml:"host"`
	Ports   []int    `toml:"ports"`
	Paths   []string `toml:"paths"`
	Methods []string `toml:"methods"`
	Address string   `toml:"address"`
	Secret  *secret  `toml:"secret"`
}

type secret struct {
	Env    string `toml:"env"`
	From   string `toml:"from"`
	Header string `toml:"header"`
}

// limits are texts, such as 60s and 1GiB, and numbers. An empty text and 0 say nothing.
type limits struct {
	CPU       string `toml:"cpu"`
	Wall      string `toml:"wall"`
	Memory    string `toml:"memory"`
	Processes int    `toml:"processes"`
	File      string `toml:"file"`
	Scratch   string `toml:"scratch"`
	DiskFloor string `toml:"disk_floor"`
	OpenFiles int    `toml:"open_files"`
	Output    string `toml:"output"`
}

// binding is a [[bind]] table.
type binding struct {
	Tenant   string   `toml:"tenant"`
	Agent    string   `toml:"agent"`
	Tool     string   `toml:"tool"`
	Profile  string   `toml:"profile"`
	Approval Approval `toml:"approval"`
}

// keysOf are the keys of a table by its struct.
func keysOf(of any) (keys []string) {
	t := reflect.TypeOf(of)
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("toml"))
	}
	return keys
}

// allowedKeys says which keys there are where one is unknown.
func allowedKeys(key []string) string {
	outer, name := "", key[len(key)-1]
	if len(key) > 1 {
		outer = key[len(key)-2]
	}
	var of any = rawProfile{}
	switch {
	case outer == "limits":
		of = limits{}
	case outer == "allow":
		of = allow{}
	case outer == "secret":
		of = secret{}
	case key[0] == bindKey:
		of = binding{}
	}
	keys := keysOf(of)
	return fmt.Sprintf(", nearest is %q; there are %s", text.Nearest(name, keys), strings.Join(keys, ", "))
}

// byteUnits are the units of sizes, the longest names first.
var byteUnits = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"", 1}}

// bytesOf reads a size, such as 64MiB.
func bytesOf(written string) (int64, error) {
	for _, unit := range byteUnits {
		number, ok := strings.CutSuffix(written, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n <= 0 || n > (1<<62)/unit.size {
			break
		}
		return n * unit.size, nil
	}
	return 0, fmt.Errorf("%q is not a size above 0, such as 64MiB; the units are KiB, MiB, GiB and TiB", written)
}

// spanOf reads a time, such as 90s.
func spanOf(written string) (time.Duration, error) {
	d, err := time.ParseDuration(written)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a time above 0, such as 90s, 10m or 1h", written)
	}
	return d, nil
}
