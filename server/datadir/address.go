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

// publicFile holds the URL at which people meet a server that has one of its own
// for them.
const publicFile = "public-address"

// SetPublicAddress writes the URL at which people meet the holder of the lock,
// "" where it is its address.
func (l *Lock) SetPublicAddress(address string) error {
	if address == "" {
		return l.dir.remove(publicFile)
	}
	if err := l.dir.write(publicFile, []byte(address+"\n")); err != nil {
		return fmt.Errorf("write public address: %w", err)
	}
	return nil
}

// PublicAddress is the URL at which people meet the server of the directory, and
// false where none runs.
func (d Dir) PublicAddress() (string, bool, error) {
	address, ok, err := d.Address()
	if err != nil || !ok {
		return "", false, err
	}
	data, err := d.read(publicFile)
	if errors.Is(err, os.ErrNotExist) {
		return address, true, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read public address: %w", err)
	}
	return strings.TrimSpace(string(data)), true, nil
}

// removeAddresses takes away where the server was met.
func (d Dir) removeAddresses() error { return errors.Join(d.remove("address"), d.remove(publicFile)) }

// remove removes a file of the directory, if it is there.
func (d Dir) remove(name string) error {
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
