package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// below reports whether a place is another one or lies in it.
func below(place, folder string) bool {
	rel, err := filepath.Rel(folder, place)
	return err == nil && filepath.IsLocal(rel)
}

// coveredBy reports whether a place is one of some, or lies in one.
func coveredBy(place string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return below(place, folder) })
}

// shared are the places that lie in both lists.
func shared(a, b []string) []string {
	var out []string
	for _, list := range [][2][]string{{a, b}, {b, a}} {
		for _, place := range list[0] {
			if coveredBy(place, list[1]) && !slices.Contains(out, place) {
				out = append(out, place)
			}
		}
	}
	return out
}

// added is a list with more behind it, each once. It never shares memory with the list.
func added(list []string, more ...string) []string {
	out := slices.Clone(list)
	for _, one := range more {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// absolute reads a place outside of the workspace; ~ is the home of the server's user.
// Links in it are followed now, so that what it names stays the same.
func absolute(written, home string) (string, string) {
	place := written
	if rest, ok := strings.CutPrefix(place, "~/"); ok {
		if home == "" {
			return "", "~ has no meaning: the server's user has no home"
		}
		place = filepath.Join(home, rest)
	}
	switch {
	case strings.ContainsAny(place, "*?["):
		return "", "is a pattern; name a folder, which stands for everything in it, or a file"
	case !filepath.IsAbs(place):
		return "", "is not absolute, and does not begin with ~/"
	}
	place = filepath.Clean(place)
	if real, err := filepath.EvalSymlinks(place); err == nil {
		place = real
	}
	if place == "/" {
		return "", "is the whole machine"
	}
	return place, ""
}

// within reads a path of the workspace. A + before it, and /** behind it, add nothing: lists
// are added to, and a folder stands for all in it.
func within(written string) (string, string) {
	path := strings.TrimSuffix(strings.TrimPrefix(written, "+"), "/**")
	switch {
	case strings.ContainsAny(path, "*?["):
		return "", "is a pattern; name a file, or a folder, which stands for everything in it"
	case path == "" || !filepath.IsLocal(path) || filepath.Clean(path) == ".":
		return "", "is no path inside of the workspace"
	}
	return filepath.Clean(path), ""
}
