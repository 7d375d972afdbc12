package commands

import (
	"path"
	"strings"
)

// Set says which names of a workspace stay as they are. A path stands for itself and for
// all below it. In front of it `**/` means that it may lie in any folder; * within a segment
// stands for any letters. Upper and lower case are equal, and characters that a file system
// may ignore are ignored, since a workspace may be on one that makes no difference. Its zero
// value has nothing. It is safe for concurrent use.
type Set struct {
	fixed map[string][]rule // by their first segment
	loose []rule            // rules that begin with a segment with *, or that match in any folder
}

type rule struct {
	parts []string
	deep  bool // in any folder
}

// anywhere is in front of a path that may lie in any folder.
const anywhere = "**/"

// NewSet makes one of paths.
func NewSet(paths []string) *Set {
	s := &Set{fixed: map[string][]rule{}}
	for _, p := range paths {
		rest, deep := strings.CutPrefix(p, anywhere)
		r := rule{strings.Split(fold(path.Clean(rest)), "/"), deep}
		if deep || strings.Contains(r.parts[0], "*") {
			s.loose = append(s.loose, r)
		} else {
			s.fixed[r.parts[0]] = append(s.fixed[r.parts[0]], r)
		}
	}
	return s
}

// AtTop returns the paths of a list as they are at the top of a workspace, including a
// repository in .git, without paths that have a * elsewhere.
func AtTop(paths []string) []string {
	var top []string
	for _, p := range paths {
		if rest, deep := strings.CutPrefix(p, anywhere); deep {
			p = strings.TrimPrefix(rest, "*")
		}
		if !strings.Contains(p, "*") {
			top = append(top, p)
		}
	}
	return top
}

// Covers reports whether a name, relative to the workspace, is one that stays as it is or lies
// in one.
func (s *Set) Covers(name string) bool {
	_, ok := s.find(name, false)
	return ok
}

// Leads reports whether one that stays as it is may lie below a name.
func (s *Set) Leads(name string) bool {
	_, ok := s.find(name, true)
	return ok
}

// Repository is the folder of git's that a covered name lies in; false where the name is
// covered, but not for git's sake alone.
func (s *Set) Repository(name string) (string, bool) {
	parts := strings.Split(fold(name), "/")
	for _, r := range s.fixed[parts[0]] {
		if r.covers(parts) {
			return "", false
		}
	}
	at, ok := s.find(name, false)
	if !ok || !strings.HasSuffix(parts[at], gitSuffix) {
		return "", false
	}
	return strings.Join(strings.Split(name, "/")[:at+1], "/"), true
}

// gitSuffix is what the name of a repository's folder ends in.
const gitSuffix = ".git"

// find returns where the rule begins that a name falls under.
func (s *Set) find(name string, leads bool) (int, bool) {
	if s == nil || name == "" || name == "." {
		return 0, false
	}
	parts := strings.Split(fold(name), "/")
	fits := rule.covers
	if leads {
		fits = rule.leads
	}
	for _, r := range s.fixed[parts[0]] {
		if fits(r, parts) {
			return 0, true
		}
	}
	for i := range parts {
		for _, r := range s.loose {
			if (i == 0 || r.deep) && fits(r, parts[i:]) {
				return i, true
			}
		}
	}
	return 0, false
}

func (r rule) covers(parts []string) bool {
	return len(parts) >= len(r.parts) && r.begins(parts[:len(r.parts)])
}

func (r rule) leads(parts []string) bool { return len(parts) < len(r.parts) && r.begins(parts) }

// begins reports whether the rule begins with parts.
func (r rule) begins(parts []string) bool {
	for i, part := range parts {
		want := r.parts[i]
		if want == part {
			continue
		}
		if !strings.Contains(want, "*") {
			return false
		}
		if ok, err := path.Match(want, part); err != nil || !ok {
			return false
		}
	}
	return true
}

// fold writes a name as a disk that sees no difference might.
func fold(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return name
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		// What HFS+ leaves out of a name, as git's own check has it.
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name))
}
