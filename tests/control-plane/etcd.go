package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdSocket  = "etcd.sock" // in the working directory, which is DIR
	etcdDataDir = "etcd"
	// etcdName and etcdPeer only have to be the same when a data directory is used again.
	etcdName      = "control-plane"
	etcdPeer      = "http://127.0.0.1:2380"
	etcdStartWait = 30 * time.Second
	slowRequest   = time.Second
)

// startEtcd starts etcd on a unix socket: no port that another instance could
// take, and nobody else on the machine can reach it. A cluster of one needs no
// listener for peers.
func startEtcd(dir string) (*embed.Etcd, error) {
	// A socket left by a killed run would refuse the bind; the lock of DIR tells that nobody uses it.
	if err := os.Remove(filepath.Join(dir, etcdSocket)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	peer, err := url.Parse(etcdPeer)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name = etcdName
	cfg.Dir = filepath.Join(dir, etcdDataDir)
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{*peer}
	cfg.InitialCluster = etcdName + "=" + etcdPeer
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Host: etcdSocket}}
	// Only told to other members; nothing listens here.
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	// Survives kill -9 (the page cache does), not a power cut. A fast test
	// cluster is worth more.
	cfg.UnsafeNoFsync = true
	cfg.LogOutputs = []string{filepath.Join(dir, logFileName)}
	cfg.LogLevel = "warn"
	// Not set, every request would be logged as slow.
	cfg.WarningUnaryRequestDuration = slowRequest

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("etcd: %w", err)
	case <-time.After(etcdStartWait):
		server.Close()
		return nil, fmt.Errorf("etcd: not ready after %s", etcdStartWait)
	}
}
