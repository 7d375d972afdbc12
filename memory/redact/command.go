package redact

import "strings"

// before bounds how far back a command is looked for: as much as is kept of a stream.
const lookBack = beforeBytes - 16

// lineBefore is what stands before a place in its line, at most so much.
func lineBefore(text string, i int) string {
	from := max(0, i-lookBack)
	if at := strings.LastIndexAny(text[from:i], "\n\r"); at >= 0 {
		from += at + 1
	}
	return text[from:i]
}

// userOption is the password in an option of user and password: curl -u
// name:password, --user, --proxy-user.
func userOption(_ *Redactor, text string, i int) (int, int, bool) {
	if text[i] != '-' { // what stands before a short option
		i++
	}
	at := i
	switch {
	case strings.HasPrefix(text[i:], "-u"), strings.HasPrefix(text[i:], "-U"):
		at += 2
	case strings.HasPrefix(text[i:], "--user"):
		at += len("--user")
	case strings.HasPrefix(text[i:], "--proxy-user"):
		at += len("--proxy-user")
	default:
		return 0, 0, false
	}
	if i > 0 && !space(text[i-1]) && strings.IndexByte("\"'`,[(", text[i-1]) < 0 {
		return 0, 0, false
	}
	if line := lineBefore(text, i); !names(line, "curl", "http", "https", "wget", "xh", "httpie") {
		return 0, 0, false
	}
	at = run(text, at, 8, func(b byte) bool { return strings.IndexByte(" \t=\"',", b) >= 0 })
	quote := text[at-1]
	colon := run(text, at, 256, func(b byte) bool { return b > ' ' && strings.IndexByte(":\"'`", b) < 0 })
	if colon == at || colon >= len(text) || text[colon] != ':' || strings.HasPrefix(text[colon:], "://") {
		return 0, 0, false
	}
	return given(text, colon+1, quote)
}

// given is a value that stands at a place, behind a quote or not, unless it only says where
// one is to be put.
func given(text string, at int, quote byte) (int, int, bool) {
	class := func(b byte) bool { return b > ' ' && strings.IndexByte("\"'`;|&)<>", b) < 0 }
	if quote == '"' || quote == '\'' {
		class = func(b byte) bool { return b != quote && b != '\n' && b != '\r' }
	}
	end := run(text, at, 1024, class)
	if at >= len(text) || end-at < 3 || strings.IndexByte("$<{[%*", text[at]) >= 0 {
		return 0, 0, false
	}
	return at, end, true
}

// names reports whether a line has a word, a path's last part among them.
func names(line string, words ...string) bool {
	for _, w := range words {
		for from := 0; ; {
			at := strings.Index(line[from:], w)
			if at < 0 {
				break
			}
			at += from
			end := at + len(w)
			if (at == 0 || !dashed(line[at-1])) && (end == len(line) || !dashed(line[end]) && line[end] != ':') {
				return true
			}
			from = end
		}
	}
	return false
}

// attached are the programs whose -p has the password right behind it, and apart those where
// it stands apart.
var (
	attached = []string{"mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mariadb", "mariadb-dump", "mariadb-admin", "sshpass"}
	apart    = []string{"sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport", "docker login", "podman login", "az login", "helm registry login", "oc login", "nerdctl login"}
)

// shortOption is the password that stands behind -p, and for others -a or -w.
func shortOption(_ *Redactor, text string, i int) (int, int, bool) {
	if i+3 >= len(text) || text[i] != ' ' && text[i] != '\t' || text[i+1] != '-' {
		return 0, 0, false
	}
	line, at := lineBefore(text, i), i+3
	next := run(text, at, 8, func(b byte) bool { return b == ' ' || b == '\t' })
	var fits bool
	switch {
	case text[i+2] == 'p' && next == at:
		fits = names(line, attached...)
	case text[i+2] == 'p':
		fits = names(line, apart...)
	case text[i+2] == 'a':
		fits = next > at && names(line, "redis-cli")
	case text[i+2] == 'w':
		fits = next > at && names(line, "ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami")
	}
	if !fits || next >= len(text) {
		return 0, 0, false
	}
	quote := text[next]
	if quote == '"' || quote == '\'' {
		next++
	} else if quote == '-' && next > at {
		return 0, 0, false // the next option
	}
	return given(text, next, quote)
}

// netrcPassword is what stands behind password in a file .netrc: machine, login, password.
func netrcPassword(_ *Redactor, text string, i int) (int, int, bool) {
	const key = "password"
	if !strings.HasPrefix(text[i:], key) || !begins(text, i) {
		return 0, 0, false
	}
	at := run(text, i+len(key), 16, space)
	if at == i+len(key) {
		return 0, 0, false
	}
	words := strings.Fields(text[max(0, i-lookBack):i])
	is := func(back int, word string) bool {
		if len(words) < back {
			return false
		}
		rest, ok := strings.CutSuffix(words[len(words)-back], word)
		return ok && (rest == "" || !dashed(rest[len(rest)-1]))
	}
	if !(is(2, "login") && (is(4, "machine") || is(3, "default")) || is(2, "machine") && strings.ContainsAny(words[len(words)-1], ".")) {
		return 0, 0, false
	}
	return given(text, at, text[at-1])
}
