package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	mastersGroup = "system:masters"
	// kubeletUser is the fake kubelet, which also asks whether all is ready.
	kubeletUser = "system:node-fake"

	// certLifetime outlives every demo.
	certLifetime = 10 * 365 * 24 * time.Hour
)

// pki is the certificates and keys of one cluster, in DIR/pki.
type pki struct {
	dir    string
	caPEM  []byte
	caCert *x509.Certificate
	caKey  crypto.Signer
}

// clients is the file name of each client certificate and who it stands for.
// The controllers get system:masters in place of one account each: the RBAC
// rules of the controllers are not what is tested, and 40 tokens less are
// asked for at the start.
var clients = map[string]pkix.Name{
	"admin":                   {CommonName: "admin", Organization: []string{mastersGroup}},
	"kubelet":                 {CommonName: kubeletUser, Organization: []string{mastersGroup}},
	"kube-controller-manager": {CommonName: "system:kube-controller-manager", Organization: []string{mastersGroup}},
	"kube-scheduler":          {CommonName: "system:kube-scheduler", Organization: []string{mastersGroup}},
}

// loadOrCreatePKI reads the files of an earlier run in dir or makes new ones,
// so that clients of a restarted cluster go on.
func loadOrCreatePKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if _, err := os.Stat(p.path("complete")); err == nil {
		return p, p.load()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.createCA(); err != nil {
		return nil, err
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)},
	}
	if err := p.issue("apiserver", serving); err != nil {
		return nil, err
	}
	for name, subject := range clients {
		cert := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if err := p.issue(name, cert); err != nil {
			return nil, err
		}
	}
	if err := p.createServiceAccountKeys(); err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.path("complete"), nil, 0o600)
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) load() (err error) {
	p.caPEM, err = os.ReadFile(p.path("ca.crt"))
	return err
}

func (p *pki) createCA() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "control-plane-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	p.caKey = key
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if p.caCert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	p.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := p.writeKey("ca.key", key); err != nil {
		return err
	}
	return os.WriteFile(p.path("ca.crt"), p.caPEM, 0o644)
}

func (p *pki) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	der, err := sign(template, p.caCert, key.Public(), p.caKey)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := p.writeKey(name+".key", key); err != nil {
		return err
	}
	return os.WriteFile(p.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(certLifetime)
	return x509.CreateCertificate(rand.Reader, template, parent, public, key)
}

func (p *pki) writeKey(name string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(p.path(name), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func (p *pki) createServiceAccountKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := p.writeKey("service-account.key", key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return os.WriteFile(p.path("service-account.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// writeKubeconfig writes a kubeconfig with everything embedded, by rename, so
// that a reader never sees half of it.
func (p *pki) writeKubeconfig(path, client, server string) error {
	cert, err := os.ReadFile(p.path(client + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(p.path(client + ".key"))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["control-plane"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: p.caPEM}
	config.AuthInfos[client] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["control-plane"] = &clientcmdapi.Context{Cluster: "control-plane", AuthInfo: client}
	config.CurrentContext = "control-plane"
	if err := clientcmd.WriteToFile(*config, path+".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
