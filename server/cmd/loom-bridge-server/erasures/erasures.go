// Package erasures is the command line of erasing with proof: it takes a subject out of a
// store, writes the certificate, and checks one.
package erasures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

const help = `Erase all that a store holds of an agent, a person or a tenant, with proof.

  loom-bridge-server erase --agent a1 --key erase.pem --out a1.json
  loom-bridge-server erase --agent a1 --session s1 --key erase.pem --out s1.json
  loom-bridge-server erase --agent a1 --step step_012 --key erase.pem --out 12.json
  loom-bridge-server erase --user ann --filter 'metadata.case = "47"' --key erase.pem --out 47.json
  loom-bridge-server erase verify a1.json

Records, their index, vectors and versions, sessions, offloaded results, events, messages,
audit records and everything else of the subject are erased. --session limits this to one
session of the agent, --step to one of its steps, --filter to the matching records. Records
that an agent saved into the memory of persons and spaces lose its name, or are erased too
(--shared records). Texts of others that contain its id stay, and are counted.

The store is copied without the erased data, and the copy replaces the old store in one
step. So no server may be running on it, and there must be room for a second store. In
PostgreSQL the tables are copied into a second schema (NAME_rewritten), and the old ones
dropped. Run a killed command again. The certificate is signed with the key, says what is
claimed and what is not, and names backups that may still hold erased data (--backup-dir).
If nothing is found the command fails and changes nothing, since an id is easily
misspelt.`

// Options are what the commands work with. All are required.
type Options struct {
	// Place is where the settings have the store. One in a directory is there.
	Place func() (stores.Place, error)
	// Open opens the store, for erasing records of calls.
	Open func() (kv.Engine, error)
	// Unopened is the error about a store that can't be opened.
	Unopened func(err error, place stores.Place) error
	// Memory is how memories work that are written anew.
	Memory func() (memory.Options, error)
	// Logger is for what happens on the way.
	Logger func(io.Writer) (*slog.Logger, error)
	// Backups returns the names of the known backups.
	Backups func() ([]string, error)
	// Refuse is the error about the value of a flag.
	Refuse  func(flag, value, problem string) error
	Version string
	Out     io.Writer
}

// Command is the command with its sub-command.
func Command(o Options) *cobra.Command {
	var e erasing
	var agent, user, stepID string
	var tenantWhole bool
	s := &e.subject
	command := &cobra.Command{Use: "erase", Short: "Erase an agent, a person or a tenant, with a signed certificate", Long: help, Args: cobra.NoArgs}
	command.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		e.Options = o
		switch {
		case agent != "" && user == "" && !tenantWhole:
			e.subject.Kind, e.subject.ID = erasure.Agent, agent
		case agent == "" && user != "" && !tenantWhole:
			e.subject.Kind, e.subject.ID = erasure.User, user
		case agent == "" && user == "" && tenantWhole:
			e.subject.Kind = erasure.Tenant
		default:
			return o.Refuse("agent", agent, "give one of --agent, --user and --whole-tenant: whose data goes")
		}
		if s.Shared == "authorship" {
			s.Shared = erase.Authorship
		}
		if number, ok := step.ParseID(stepID); ok {
			s.Step = number
		} else if stepID != "" {
			return o.Refuse("step", stepID, "is not `step_` and a number of at least three digits")
		}
		for _, given := range []struct{ flag, value string }{{"session", s.Session}, {"step", stepID}, {"filter", s.Filter}} {
			if given.value == "" && cmd.Flags().Changed(given.flag) {
				return o.Refuse(given.flag, "", "is empty; leave it out for all")
			}
		}
		if err := erasure.Check(*s); err != nil {
			return o.refuseSubject(*s, err)
		}
		if e.key == "" {
			return o.Refuse("key", "", "is required: the file with the signing key; it is created if absent")
		}
		if e.out == "" {
			return o.Refuse("out", "", "is required: the file for the certificate")
		}
		if e.logger, err = o.Logger(cmd.ErrOrStderr()); err != nil {
			return err
		}
		return e.run(cmd.Context())
	}
	flags := command.Flags()
	flags.StringVar(&agent, "agent", "", "`id` of the agent whose data goes")
	flags.StringVar(&user, "user", "", "`id` of the person whose data goes")
	flags.BoolVar(&tenantWhole, "whole-tenant", false, "everything of --tenant goes")
	flags.StringVar(&s.Session, "session", "", "of the agent only the session with this `id`")
	flags.StringVar(&stepID, "step", "", "of the agent only the step with this `id`, such as step_012; with --session it must be one of that")
	flags.StringVar(&s.Filter, "filter", "", "only the records that this `expression` lets through, such as 'metadata.case = \"47\"'")
	flags.StringVar((*string)(&s.Shared), "shared", "authorship", "what becomes of records that the agent saved into the memory of persons and spaces: `authorship` takes its name off them, records takes them with it")
	flags.StringVar(&s.Tenant, "tenant", "default", "`name` of the tenant")
	flags.StringVar(&e.key, "key", "", "PEM `file` with the ed25519 key that signs (required); made if it is not there")
	flags.StringVar(&e.out, "out", "", "`file` for the certificate, which must not exist (required)")
	flags.BoolVar(&e.absence, "certify-absence", false, "where nothing is found, sign a certificate that says so, instead of failing")
	command.AddCommand(o.verify())
	return command
}

// refuseSubject is the error about the flag that there can be no subject for.
func (o Options) refuseSubject(s erasure.Subject, err error) error {
	bad, ok := errors.AsType[*invalid.Error](err)
	switch {
	case ok && bad.Field == "session":
		return o.Refuse("session", s.Session, bad.Problem)
	case ok && bad.Field == "step":
		return o.Refuse("step", step.ID(s.Step), bad.Problem)
	case ok && bad.Field == "filter":
		return o.Refuse("filter", s.Filter, bad.Problem)
	case ok && bad.Field == "shared":
		return o.Refuse("shared", string(s.Shared), bad.Problem)
	case s.Kind == erasure.Tenant:
		return o.Refuse("tenant", s.Tenant, err.Error())
	}
	return o.Refuse(string(s.Kind), s.ID, err.Error())
}

const verifyHelp = `Check a certificate against its signature and against the store: every file, or what each
table of PostgreSQL holds, must be as it was, and a scan that decodes every entry must find
nothing of the subject. A server that has run since has changed the files: with --changed
only the scan counts. No server may be running, and nothing is written. The exit status is 1
when something does not hold.`

func (o Options) verify() *cobra.Command {
	var changed bool
	var signer string
	command := &cobra.Command{Use: "verify FILE", Short: "Check a certificate against the store", Long: verifyHelp, Args: cobra.ExactArgs(1)}
	command.RunE = func(cmd *cobra.Command, names []string) error {
		c, err := readCertificate(names[0])
		if err != nil {
			return err
		}
		by, err := readSigner(signer)
		if err != nil {
			return o.Refuse("signer", signer, err.Error())
		}
		if err := c.Verify(by); err != nil {
			return err
		}
		place, err := o.Place()
		if err != nil {
			return err
		}
		if c.Engine != engineOf(place) {
			return fmt.Errorf("%w: it is of a store in %s", erasure.ErrNotTrue, c.Engine)
		}
		files := "what the store consists of was not compared"
		if !changed && len(c.Files)+len(c.Tables) > 0 { // a running server's certificate names none
			if files, err = o.compare(cmd.Context(), place, c); err != nil {
				return fmt.Errorf("%w; if a server has run since, --changed scans the entries alone", err)
			}
		}
		left, _, err := o.scan(cmd.Context(), place, c)
		if err != nil {
			return err
		}
		if left > 0 {
			return fmt.Errorf("%w: %d entries of %s are in the store", erasure.ErrNotTrue, left, c.Subject)
		}
		if signer == "" {
			files += fmt.Sprintf("; signed by %x, which nothing vouches for without --signer", c.PublicKey)
		}
		return o.say("%s (%s): the signature is right, no entry is left, %s\n", c.Statement, c.Time.Format(time.RFC3339), files)
	}
	command.Flags().BoolVar(&changed, "changed", false, "a server has run since: scan the entries, do not compare the files")
	command.Flags().StringVar(&signer, "signer", "", "PEM `file` with the key that must have signed, the whole or its public part")
	return command
}

// scan decodes every entry of a store, and returns how many are the subject's, and of those
// that are not how many have its id, by whose words they are.
func (o Options) scan(ctx context.Context, place stores.Place, c *erasure.Certificate) (left int64, quoted map[string]int64, err error) {
	engine, err := o.open(ctx, place)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	eraser, err := erasure.NewFinder(ctx, c.Subject, engine, c.Records)
	if err != nil {
		return 0, nil, err
	}
	err = engine.Each(ctx, func(ks kv.Keyspace, p kv.Pair) error {
		_, _, err := eraser.Change(ctx, ks, p)
		return err
	})
	return eraser.Left(), eraser.Quoted(), err
}

func (o Options) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.Out, format, args...)
	return err
}
