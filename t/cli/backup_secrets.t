#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# How pg_dump and pg_restore receive connection secrets: the password of a TLS
# client key appears on no command line, in no environment variable and in no
# file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir run_command slurp spew /;

plan(skip_all => 'no openssl')
	if (run_command([ 'openssl', 'version' ]))[0] != 0;

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 300);

my @sql = ('--sql', build_dir() . '/sql');
my $tls = $t->dir() . '/tls';
my $bin = $t->dir() . '/bin';
my $secret = "s'e cr=et\\1";

# an address that only this test uses: in all tests PostgreSQL has port 5432,
# since the number in the name of its socket is also its TCP port

my $address = join('.', 127, map { 1 + int(rand(250)) } 1 .. 3);

mkdir($_) or die "$_: $!\n" for $tls, $bin;
certificates();

spew($t->pg()->data() . '/postgresql.conf', slurp($t->pg()->data()
	. '/postgresql.conf') . "\nlisten_addresses = '$address'\nssl = on\n"
	. "ssl_cert_file = '$tls/server.crt'\nssl_key_file = '$tls/server.key'"
	. "\nssl_ca_file = '$tls/ca.crt'\n");
spew($t->pg()->data() . '/pg_hba.conf', slurp($t->pg()->data()
	. '/pg_hba.conf') . "hostssl all all $address/32 cert\n");

$t->run();

my $data = mix(1, 300000);
my $file = $t->upload($data, xorb_chunks => 2);

# --------------------------------------------------------------------------
# the connection requires the key, and the key requires its password

my $open = "host=$address dbname=xet user=xet sslmode=verify-ca"
	. " sslrootcert=$tls/ca.crt sslcert=$tls/xet.crt sslkey=$tls/xet.key";
my $quoted = $secret =~ s/(['\\])/\\$1/gr;
my $conninfo = "$open sslpassword='$quoted'";

is(run($open . " sslpassword=wrong", 'usage')->{code}, 3,
	'another password of the key');
is(run($conninfo, 'usage')->{code}, 0, 'the right one');

watched('pg_dump');
watched('pg_restore');

my $r = run($conninfo, 'backup', $t->dir() . '/backup');

is($r->{code}, 0, 'a backup') or diag($r->{err});
seen('pg_dump');
unlike($r->{out} . $r->{err}, qr/\Q$secret\E|\Q$quoted\E/, 'no secret printed');

# the password comes from the operator's service file

spew("$tls/service", "[mine]\n" . join("\n", split(/ /, $open))
	. "\nsslpassword=$secret\n");
$r = run('service=mine', { PGSERVICEFILE => "$tls/service" }, 'backup',
	$t->dir() . '/backup');
is($r->{code}, 0, 'a service') or diag($r->{err});
seen('pg_dump');

# restore

$t->nginx()->stop();
$r = run($conninfo, 'restore', @sql, '--force', $t->dir() . '/backup');
is($r->{code}, 0, 'a restore') or diag($r->{err});
seen('pg_restore');
$t->run();
is_deeply($t->download($file->{hash}, size => length($data))->{errors}, [],
	'and the file is there');

# --------------------------------------------------------------------------
# passwords that a service file cannot hold

for my $bad ("'ends with a space '", "'two\nlines'", 'x' x 1000) {
	$r = run($t->conninfo() . " sslpassword=$bad", 'backup',
		$t->dir() . '/backup');
	is($r->{code}, 3, 'a password that can\'t be handed over');
	like($r->{err}, qr/^xet: sslpassword: .*cannot pass it to/,
		'and why');
	unlike($r->{err}, qr/ends with a space '|two|xxx/,
		'without the password');
}

# without a password, xet passes no service file

unlink("$bin/pg_dump.seen");
is(run($t->conninfo(), 'backup', $t->dir() . '/backup')->{code}, 0, 'none');
unlike(slurp("$bin/pg_dump.seen"), qr/PGSERVICEFILE|service=/, 'no service');

$t->done();

# --------------------------------------------------------------------------

sub run {
	my ($pg, @args) = @_;

	my %more = ref $args[0] ? %{ shift @args } : ();

	return xet(undef, { env => { XET_STORE => $t->store(),
		XET_POSTGRES => $pg, PATH => "$bin:$ENV{PATH}", %more } },
		@args);
}

# Wraps the program: the wrapper records everything that other users could see,
# and the service file.

sub watched {
	my ($program) = @_;

	my ($real) = grep { -x $_ } map { "$_/$program" }
		split(/:/, $ENV{PATH}), $t->pg()->bin();

	spew("$bin/$program", "#!/bin/sh\n{ tr '\\0' '\\n' < /proc/\$\$/cmdline"
		. "; tr '\\0' '\\n' < /proc/\$\$/environ; }"
		. " > $bin/$program.seen\n"
		. "[ -z \"\$PGSERVICEFILE\" ] || cat \"\$PGSERVICEFILE\""
		. " > $bin/$program.service\n"
		. "exec $real \"\$@\"\n");
	chmod(0755, "$bin/$program");
}

sub seen {
	my ($program) = @_;

	my $seen = slurp("$bin/$program.seen");

	like($seen, qr/^-d\n.*host='\Q$address\E'/m,
		"$program: the connection");
	unlike($seen, qr/\Q$secret\E|\Q$quoted\E|sslpassword/,
		"$program: no secret");
	like($seen, qr{^PGSERVICEFILE=/proc/self/fd/\d+$}m,
		"$program: a file without a name");
	is(slurp("$bin/$program.service"), "[xet]\nsslpassword=$secret\n",
		"$program: what is in it");
	unlink("$bin/$program.seen", "$bin/$program.service");
}

sub certificates {
	my $user = $t->pg()->{user};

	openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout',
		"$tls/ca.key", '-out', "$tls/ca.crt", '-subj', '/CN=ca',
		'-days', 2);

	for my $name ('server', 'xet') {
		openssl('req', '-newkey', 'rsa:2048', '-keyout',
			"$tls/$name.key", '-out', "$tls/$name.csr", '-subj',
			"/CN=$name", $name eq 'xet'
			? ('-passout', "pass:$secret") : '-nodes');
		openssl('x509', '-req', '-in', "$tls/$name.csr", '-CA',
			"$tls/ca.crt", '-CAkey', "$tls/ca.key", '-set_serial',
			1, '-out', "$tls/$name.crt", '-days', 2);
		chmod(0600, "$tls/$name.key");
	}

	chmod(0755, $tls);
	chown((getpwnam($user))[2, 3], "$tls/server.key") if $> == 0;
}

sub openssl {
	my ($status, $out) = run_command([ 'openssl', @_ ]);

	die "openssl @_:\n$out\n" if $status;
}
