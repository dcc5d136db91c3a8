package datadir

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// SetAddress writes the URL at which the holder of the lock is met.
func (l *Lock) SetAddress(address string) error {
	if err := l.dir.write("address", []byte(address+"\n")); err != nil {
		return fmt.Errorf("write address: %w", err)
	}
	return nil
}

// Address is the URL at which the server of the directory is met, and false
// where none runs, or none that can be met yet. What a server that was killed
// left behind does not count: somebody else may listen there by now.
func (d Dir) Address() (string, bool, error) {
	if !d.Held() {
		return "", false, nil
	}
	data, err := d.read("address")
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read address: %w", err)
	}
	address := strings.TrimSpace(string(data))
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", false, fmt.Errorf("%s holds no address of a server; stop the server and start it again", d.file("address"))
	}
	return address, true, nil
}

func (d Dir) removeAddress() error {
	if err := os.Remove(d.file("address")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
