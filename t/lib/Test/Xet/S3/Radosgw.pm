package Test::Xet::S3::Radosgw;

# Copyright (C) the ngx_http_xet_module authors

# Runs Ceph's gateway, with a monitor and one OSD that stores everything in
# memory.  Monitor and OSD keep running while the gateway is stopped.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use Test::Xet::Process qw/
	build_dir free_port reap run_command slurp spawn spew wait_for
/;

my $fsid = '5e5e5e5e-5e5e-4e5e-8e5e-5e5e5e5e5e5e';
my $osd = '5e5e5e5e-5e5e-4e5e-8e5e-5e5e5e5e5e50';

sub tree {
	return build_dir() . '/s3/radosgw';
}

sub lacks {
	return -x tree() . '/usr/bin/radosgw' ? ''
		: 'not installed, run "make s3-servers"';
}

sub prepare {
	my ($self) = @_;

	my $dir = $self->{dir};
	my ($lib) = glob(tree() . '/usr/lib/*/ceph');

	$lib =~ s!/ceph$!!;
	$self->{mon} = 'v2:127.0.0.1:' . free_port();

	my ($machine) = $lib =~ m!([^/]+)$!;

	$self->{env} = {
		CEPH_CONF => "$dir/ceph.conf",
		PYTHONPATH => tree() . '/usr/lib/python3/dist-packages',
		LD_LIBRARY_PATH => join(':', tree() . "/lib/$machine", $lib,
			"$lib/ceph")
	};

	mkdir("$dir/$_") for qw/ mon osd rgw run /;

	spew("$dir/ceph.conf", <<"EOF");
[global]
fsid = $fsid
mon host = [$self->{mon}]
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
mon allow pool size one = true
mon max pg per osd = 1000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 8589934592
public addr = 127.0.0.1
cluster addr = 127.0.0.1
mon data = $dir/mon
osd data = $dir/osd
rgw data = $dir/rgw
rgw dns name = localhost
run dir = $dir/run
crash dir = $dir/run
admin socket =
pid file =
log file = $dir/\$name.log
keyring = $dir/keyring
osd class dir = $lib/rados-classes
erasure code dir = $lib/ceph/erasure-code
plugin dir = $lib/ceph
EOF
}

sub program {
	return tree() . "/usr/bin/$_[0]";
}

sub run {
	my ($self, @command) = @_;

	my ($status, $out) = run_command(\@command, env => $self->{env});

	die "@command: $out\n" if $status;

	return $out;
}

sub ceph {
	my ($self, @words) = @_;

	return $self->run('/usr/bin/python3', program('ceph'), @words);
}

sub command {
	my ($self) = @_;

	$self->start_cluster() unless $self->{cluster};

	return ([ program('radosgw'), '-f', '-n', 'client.admin',
		"--rgw-frontends=beast endpoint=127.0.0.1:$self->{port}" ],
		env => $self->{env});
}

sub start_cluster {
	my ($self) = @_;

	my $dir = $self->{dir};

	$self->run(program('ceph-authtool'), '-C', "$dir/keyring",
		'--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *');
	$self->run(program('ceph-authtool'), "$dir/keyring", '--gen-key',
		'-n', 'client.admin', '--cap', 'mon', 'allow *', '--cap',
		'osd', 'allow *');
	$self->run(program('monmaptool'), '--create', '--addv', 'a',
		"[$self->{mon}]", '--fsid', $fsid, "$dir/monmap");
	$self->run(program('ceph-mon'), '--mkfs', '-i', 'a', '--monmap',
		"$dir/monmap", '--keyring', "$dir/keyring");

	$self->daemon('ceph-mon', '-i', 'a', '-f');
	$self->ceph('osd', 'new', $osd);
	$self->run(program('ceph-osd'), '-i', 0, '--mkfs', '--osd-uuid', $osd);
	$self->daemon('ceph-osd', '-i', 0, '-f');

	wait_for(60, sub { $self->ceph('osd', 'stat') =~ /1 up/ })
		or die "radosgw: no OSD\n";
}

sub daemon {
	my ($self, $name, @args) = @_;

	push @{ $self->{cluster} }, spawn([ program($name), @args ],
		env => $self->{env}, death => 'KILL',
		output => "$self->{dir}/server.log");
}

sub ready {
	my ($self) = @_;

	$self->run(program('radosgw-admin'), '-n', 'client.admin', 'user',
		'create', '--uid=test', '--display-name=test',
		"--access-key=$self->{key}", "--secret=$self->{secret}");
}

sub rekey {
	my ($self) = @_;

	my @admin = (program('radosgw-admin'), '-n', 'client.admin', 'key');

	$self->run(@admin, 'create', '--uid=test', '--key-type=s3',
		"--access-key=$self->{key}", "--secret=$self->{secret}");
	$self->run(@admin, 'rm', '--uid=test', '--key-type=s3',
		"--access-key=$self->{old_key}");
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);

	$self->SUPER::DESTROY();

	return if $self->{owner} != $$;

	for my $pid (splice(@{ $self->{cluster} || [] })) {
		CORE::kill('KILL', $pid);
		reap($pid, 5);
	}
}

1;
