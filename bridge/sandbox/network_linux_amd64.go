package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// proxyPort is where the proxy is in its own network.
const proxyPort = 3128

// outward is the way out of one run.
type outward struct {
	network  Network
	listener net.Listener // nil in tier N until the first stage has sent it
	serving  sync.WaitGroup
}

// wayOut prepares the way out of a job, if its policy has one. In tier N the proxy listens in
// the network of the sandbox; elsewhere on the loopback of the machine, for clients with a
// token.
func wayOut(spec *inner.Spec, job Job, policy Policy) (*outward, error) {
	if !policy.Mode.networked() {
		return nil, nil
	}
	if job.Network == nil {
		return nil, fmt.Errorf("%w: mode %s needs a proxy, and this server has none for the job", ErrPolicy, policy.Mode)
	}
	o := &outward{network: job.Network}
	spec.Proxy = proxyPort
	own := spec.With(inner.LayerNet)
	if spec.Tier != inner.Namespaces {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("sandbox: proxy: %w", err)
		}
		o.listener, spec.Proxy = l, l.Addr().(*net.TCPAddr).Port
	}
	spec.Env = append(spec.Env, job.Network.Env("127.0.0.1:"+strconv.Itoa(spec.Proxy), !own)...)
	spec.Read = append(spec.Read, resolved(job.Network.Files())...)
	return o, nil
}

// close ends the serving and waits for it.
func (o *outward) close() {
	if o == nil {
		return
	}
	if o.listener != nil {
		_ = o.listener.Close() // Serve may have closed it
	}
	o.serving.Wait()
}

// serve serves the proxy of a run, once there is its listener.
func (p *process) serve(o *outward) {
	if o.listener == nil {
		l, err := p.listener()
		if err != nil {
			return // the report says why
		}
		o.listener = l
	}
	o.serving.Go(func() { o.network.Serve(o.listener) })
}

// listener takes the listener that the first stage sends before anything else.
func (p *process) listener() (net.Listener, error) {
	if !p.ready() {
		return nil, errors.New("sandbox: listener: the stage is not ready")
	}
	head, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oob, err := receive(p.control, head, rights)
	if err != nil {
		return nil, err
	}
	if n == 1 && head[0] != inner.ListenerMark {
		p.head = head // of the report
	}
	listener, err := descriptor(rights[:oob])
	if err != nil {
		return nil, fmt.Errorf("sandbox: listener: %w", err)
	}
	file := os.NewFile(uintptr(listener), "listener")
	defer file.Close()
	return net.FileListener(file)
}
