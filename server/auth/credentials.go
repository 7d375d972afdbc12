package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrCredentials: the credentials file can't be used. Found at start, and when it
// is read again.
var ErrCredentials = errors.New("server: bad credentials file")

// maxCredentialsBytes bounds the file: ten thousand credentials fit.
const maxCredentialsBytes = 8 << 20

// Credentials are the callers a server knows: the ones in the file when it was last read.
// All methods are safe for concurrent use.
type Credentials struct {
	path string

	reloading sync.Mutex // one Reload at a time
	known     atomic.Pointer[callers]
}

// callers are what one reading of the file found. They do not change.
type callers struct {
	tokens   map[[sha256.Size]byte]*grant
	subjects map[string]*grant
	holders  map[holding]string
}

// credential is one [[credential]] table of the file.
type credential struct {
	// TokenSHA256 is the hash of a bearer token, in hex. It can't be turned
	// back, so a file of hashes need not be secret.
	TokenSHA256 string `toml:"token_sha256"`
	// Token is the bearer token itself; the file must then be the owner's only.
	Token string `toml:"token"`
	// Subject is the common name or an alternative name of a client
	// certificate.
	Subject string `toml:"subject"`
	// Tenant is whose data the caller sees. Required.
	Tenant string `toml:"tenant"`
	// Agents are whom the caller may act for: exact ids, or a beginning and `*`.
	Agents []string `toml:"agents"`
	// Expires is when the credential stops to count, with a time zone. Default
	// never.
	Expires any `toml:"expires"`
	// ReadsUsers, WritesUsers and AdministersUsers are persons, in the same form, whose
	// memories the caller may read, write and administer; each includes those before it.
	// Default: the persons whose memories its agents are granted (SharingService), and for
	// a caller with agents = ["*"] all.
	ReadsUsers       []string `toml:"reads_users"`
	WritesUsers      []string `toml:"writes_users"`
	AdministersUsers []string `toml:"administers_users"`
	// Edits are agents, in the same form, whose records in people's memories the caller
	// may change and delete, in addition to its own agents' records. Default: none.
	Edits []string `toml:"edits"`
	// Approves are agents, in the same form, whose calls the caller may approve, as a person
	// does. Default: none; give it to people, not to agents.
	Approves []string `toml:"approves"`
	// Operates says that the caller runs the server: it may make and list backups, and list whose memory there is, of all
	// tenants. Default: no; give it to people and their programs, not to agents.
	Operates bool `toml:"operates"`
	// Provides are the tools that these agents may provide for others, in the same
	// form. Default: all.
	Provides []string `toml:"provides"`
}

// LoadCredentials reads a TOML file of [[credential]] tables, each with
// exactly one of token_sha256, token and subject, a tenant and the agents. All
// errors are ErrCredentials and name the credential by its number, from 1.
func LoadCredentials(path string) (*Credentials, error) {
	found, err := readCallers(path)
	if err != nil {
		return nil, err
	}
	c := &Credentials{path: path}
	found.begin()
	c.known.Store(found)
	return c, nil
}

// Reload reads the file again. Streams of a credential that is gone, that has
// another tenant or fewer agents end with ErrUnauthenticated; all others go on, and
// calls under way finish. If the file can't be used, the error says why and
// everything stays as it was.
func (c *Credentials) Reload() error {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	next, err := readCallers(c.path)
	if err != nil {
		return err
	}
	before := c.known.Load()
	next.takeOver(before)
	next.begin()
	c.known.Store(next)
	kept := make(map[*lifetime]bool)
	for g := range next.all() {
		kept[g.lifetime] = true
	}
	for g := range before.all() {
		if !kept[g.lifetime] {
			g.endAt(time.Time{})
			g.stop(fmt.Errorf("%w: the credential was taken away or changed", ErrUnauthenticated))
		}
	}
	return nil
}

// Len is how many credentials there are, including expired ones.
func (c *Credentials) Len() int {
	known := c.known.Load()
	return len(known.tokens) + len(known.subjects)
}

// readCallers reads the file.
func readCallers(path string) (*callers, error) {
	text, mode, err := readCredentials(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	c, plain, err := parseCredentials(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCredentials, path, err)
	}
	if mode.Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%w: others can write %s and so add themselves: chmod go-w", ErrCredentials, path)
	}
	if plain && mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s holds plain tokens and others can read it: chmod 600, or use token_sha256",
			ErrCredentials, path)
	}
	return c, nil
}

// Tenants returns the tenants that credentials name, each once, in order.
func (c *Credentials) Tenants() []string {
	tenants := map[string]bool{}
	for g := range c.known.Load().all() {
		tenants[g.tenant] = true
	}
	return slices.Sorted(maps.Keys(tenants))
}

// HasTenant reports whether a credential names the tenant.
func (c *Credentials) HasTenant(tenant string) bool {
	for g := range c.known.Load().all() {
		if g.tenant == tenant {
			return true
		}
	}
	return false
}

func readCredentials(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCredentialsBytes {
		return nil, 0, fmt.Errorf("%s is not a file of at most %d bytes", path, maxCredentialsBytes)
	}
	text, err := os.ReadFile(path)
	return text, info.Mode(), err
}

func parseCredentials(text []byte) (c *callers, plain bool, err error) {
	var file struct {
		Credential []credential `toml:"credential"`
	}
	decoder := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, false, describeTOML(err)
	}
	if len(file.Credential) == 0 {
		return nil, false, errors.New("it holds no [[credential]], so no client could call")
	}
	c = &callers{tokens: map[[sha256.Size]byte]*grant{}, subjects: map[string]*grant{}, holders: map[holding]string{}}
	for i, one := range file.Credential {
		if err := c.add(one); err != nil {
			return nil, false, fmt.Errorf("credential %d: %w", i+1, err)
		}
		plain = plain || one.Token != ""
	}
	return c, plain, nil
}

// describeTOML adds the keys that strict decoding refused: the library's own
// text leaves them out.
func describeTOML(err error) error {
	var unknown *toml.StrictMissingError
	if !errors.As(err, &unknown) || len(unknown.Errors) == 0 {
		return err
	}
	row, _ := unknown.Errors[0].Position()
	return fmt.Errorf("line %d: unknown key %q", row, strings.Join(unknown.Errors[0].Key(), "."))
}

func (c *callers) add(one credential) error {
	id, err := one.identity()
	if err != nil {
		return err
	}
	given := 0
	for _, s := range []string{one.TokenSHA256, one.Token, one.Subject} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return errors.New("give exactly one of token_sha256, token and subject")
	}
	g := &grant{Identity: id}
	if g.expires, err = one.expiry(); err != nil {
		return err
	}
	// Notes the holder of an identity's agents. Credentials with the same agents, such as
	// an old and a new token of one client, are one holder; of others that share a pattern,
	// the first by name.
	name := strings.Join(slices.Compact(slices.Sorted(slices.Values(id.patterns))), "\x00")
	for _, pattern := range id.patterns {
		at := holding{id.tenant, pattern}
		if before, taken := c.holders[at]; !taken || name < before {
			c.holders[at] = name
		}
	}
	if one.Subject != "" {
		return c.addSubject(one.Subject, g)
	}
	return c.addToken(one, g)
}

// expiry is when the credential ends; zero for never.
func (one credential) expiry() (time.Time, error) {
	switch at := one.Expires.(type) {
	case nil:
		return time.Time{}, nil
	case time.Time:
		return at, nil
	}
	return time.Time{}, fmt.Errorf("expires: %v is not a time with a zone, such as 2027-01-01T00:00:00Z", one.Expires)
}

func (one credential) identity() (Identity, error) {
	if !ValidTenant(one.Tenant) {
		return Identity{}, fmt.Errorf("tenant: %q is not 1 to %d letters, digits, '-', '_' or '.', beginning with a letter or digit",
			one.Tenant, kv.MaxTenantBytes)
	}
	if len(one.Agents) == 0 {
		return Identity{}, errors.New("agents: at least one is needed")
	}
	for field, patterns := range map[string][]string{
		"agents": one.Agents, "edits": one.Edits, "approves": one.Approves, "provides": one.Provides,
		"reads_users": one.ReadsUsers, "writes_users": one.WritesUsers, "administers_users": one.AdministersUsers,
	} {
		for _, pattern := range patterns {
			if head := strings.TrimSuffix(pattern, "*"); pattern == "" || strings.Contains(head, "*") {
				return Identity{}, fmt.Errorf("%s: %q is neither a name nor a beginning and one *", field, pattern)
			}
		}
	}
	users := map[grants.Level][]string{grants.Read: one.ReadsUsers, grants.Write: one.WritesUsers, grants.Admin: one.AdministersUsers}
	maps.DeleteFunc(users, func(_ grants.Level, patterns []string) bool { return patterns == nil })
	return Identity{
		users: users, tenant: one.Tenant, patterns: slices.Clone(one.Agents), edits: slices.Clone(one.Edits), approves: slices.Clone(one.Approves), operates: one.Operates, provides: slices.Clone(one.Provides),
	}, nil
}

// ValidTenant accepts what is a plain file name everywhere: a tenant names its
// workspace folder.
func ValidTenant(tenant string) bool {
	if tenant == "" || len(tenant) > kv.MaxTenantBytes || strings.ContainsRune("-_.", rune(tenant[0])) {
		return false
	}
	return !strings.ContainsFunc(tenant, func(c rune) bool {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return false
		}
		return !strings.ContainsRune("-_.", c)
	})
}

func (c *callers) addSubject(subject string, g *grant) error {
	if _, taken := c.subjects[subject]; taken {
		return fmt.Errorf("subject %q is given twice", subject)
	}
	c.subjects[subject] = g
	return nil
}

func (c *callers) addToken(one credential, g *grant) error {
	hash := sha256.Sum256([]byte(one.Token))
	if one.Token == "" {
		raw, err := hex.DecodeString(one.TokenSHA256)
		if err != nil || len(raw) != sha256.Size {
			return errors.New("token_sha256 is not 64 hex digits")
		}
		hash = [sha256.Size]byte(raw)
	}
	if _, taken := c.tokens[hash]; taken {
		return errors.New("the token is given twice")
	}
	c.tokens[hash] = g
	return nil
}

// bySubject finds what the first name that is known grants.
func (c *Credentials) bySubject(names []string) (*grant, bool) {
	known := c.known.Load().subjects
	for _, name := range names {
		if g, ok := known[name]; ok && name != "" {
			return g, true
		}
	}
	return nil, false
}
