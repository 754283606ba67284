#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Directives: accepted values, refused values, and error messages.  No message
# contains a secret, and accepted configurations work.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table /;

Test::Xet->folder('what nginx -t says of folders');

my @secrets = map { my $n = $_; join('', map {
	sprintf('%02x', (7 * $_ + $n) % 256) } 0 .. 31) } 1, 40, 80, 120;
my ($url_secret, $dedup_secret, $odd_secret, $old_secret) = @secrets;

my $t = Test::Xet->new(workers => 1);

sub key_file {
	my ($name, $content, $mode) = @_;

	my $file = $t->write_file("keys/$name", $content);
	chmod($mode // 0600, $file);

	return $file;
}

$t->write_file('url.key', "url:k1:$url_secret\n");
$t->write_file('dedup.key', "dedup:$dedup_secret\n");

my $api = 'location /api/ { xet_api; xet_auth off; ';

sub no_secrets {
	my ($name, $text) = @_;

	my @found = grep { index(lc($text), substr($_, 0, 16)) >= 0
		|| index($text, pack('H*', substr($_, 0, 16))) >= 0 } @secrets;

	is(scalar @found, 0, "$name: no secret shown") or diag($text);
}

sub good {
	my ($name, %o) = @_;

	my ($good, $out) = $t->config_test(undef, %o);

	ok($good, $name) or diag($out);

	return $out;
}

# Checks that the configuration is refused with this message, a file and a line.

sub bad {
	my ($name, $regex, %o) = @_;

	my ($good, $out) = $t->config_test(delete $o{conf}, %o);

	ok(!$good, "$name: refused");
	like($out, $regex, "$name: why");
	like($out, qr!\[emerg\].* in \S+:\d+$!m, "$name: where");
	no_secrets($name, $out);
}

sub with {
	my (%directives) = @_;

	return (directives => \%directives);
}

sub location {
	my ($directives) = @_;

	return (locations => "$api $directives }");
}

# --------------------------------------------------------------------------
# the usual configuration

no_secrets('the usual one', good('the usual one'));

for my $name (qw/ xet_store xet_postgres xet_url_key /) {
	bad("without $name", qr/"$name" is required by "xet_api"/,
		with($name => undef));
}

good('without xet_dedup_key', with(xet_dedup_key => undef));
good('without xet_url_base', with(xet_url_base => undef));
good("xet_url_base $_", with(xet_url_base => $_))
	for 'https://[::1]:8443/a-b_c.d~e', 'https://$host/x', '$http_x_base',
		'https://a.example/hf http://localhost:8080';
bad("xet_url_base $_", qr/invalid URL ".*" in "xet_url_base": it must be http/,
	with(xet_url_base => $_))
	for 'http://x/a%20b', '"http://x/a b"', 'http://x/?y', '"http://x/#y"',
		"'http://x/\"'", 'cas.example.com', '//cas.example.com', '""',
		'cas.$host', '/x', 'http://', 'http://u@x', 'http://x:0',
		'http://x:65536', 'http://x http://$host', 'http://x y';
good("xet_proxies $_", server => "xet_proxies $_;")
	for '10.0.0.0/8 ::1', 'unix: 127.0.0.1';
bad("xet_proxies $_", qr/invalid address ".*" in "xet_proxies"/,
	server => "xet_proxies $_;")
	for 'a.example', '10.0.0.0/33', '10.1', '""';
good('without xet_thread_pool', with(xet_thread_pool => undef));
good('without any location', locations => '');
good('without anything', locations => '', with(map { $_ => undef }
	qw/ xet_store xet_postgres xet_url_key xet_dedup_key xet_url_base
	xet_thread_pool /));

my %nothing = map { $_ => undef } qw/ xet_store xet_postgres xet_dedup_key
	xet_thread_pool /;

good('xet_data alone', locations => 'location /xorbs/ { xet_data; }',
	with(%nothing));
bad('xet_data without keys', qr/"xet_url_key" is required by "xet_data"/,
	locations => 'location /xorbs/ { xet_data; }',
	with(%nothing, xet_url_key => undef));

# --------------------------------------------------------------------------
# xet_auth

bad('without xet_auth', qr/"xet_api" needs "xet_auth".*connect read, write and/,
	locations => 'location /api/ { xet_api; }');
bad("xet_auth $_", qr/invalid value "$_"/,
	locations => "location /api/ { xet_api; xet_auth $_; }")
	for qw/ on jwt 0 /;
bad('xet_auth token', qr/"xet_auth token" needs "xet_token_key"/,
	locations => 'location /api/ { xet_api; xet_auth token; }');

# values that are too long for tokens that nginx issues, but valid for tokens
# from other issuers

$t->write_file('sign.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/sign.key');

for my $name (qw/ issuer audience /) {
	my $long = "xet_token_key %%DIR%%/sign.key; xet_token_$name "
		. 'x' x 257 . ';';

	bad("xet_token: $name", qr/must be at most 256 bytes/, http => $long,
		locations => 'location /token { xet_token; }');
	good("xet_api: $name", http => $long,
		locations => 'location /api/ { xet_api; xet_auth token; }');
}

# token epochs

my %sign = (http => 'xet_token_key %%DIR%%/sign.key;');

for my $value ('off', 0, 1, '007', 9999999999, 'period=1m', 'period=60',
	'period=366d', '99 period=14d', 'period=14d 99', '0 period=1h30m')
{
	good("xet_token_epoch $value", %sign, locations =>
		"location /t { xet_token; xet_token_epoch $value; }");
}

for my $value ('on', "''", -1, 10000000000, 1.5, '1x', 'period=', 'period=59',
	'period=0', 'period=367d', 'period=x', 'period=1m period=2m', '1 2',
	'off period=1d', 'period=1d off', '1 off', 'off off', '$host')
{
	bad("xet_token_epoch $value", qr/invalid parameter "/, %sign,
		locations => "location /t { xet_token; "
		. "xet_token_epoch $value; }");
}

bad("xet_token_epoch $_", qr/must not exceed 99 if a period is /,
	%sign, locations => "location /t { xet_token_epoch $_; }")
	for '100 period=14d', 'period=1m 9999999999';
bad('xet_token_epoch twice', qr/"xet_token_epoch" directive is dup/,
	%sign, locations => 'location /t { xet_token; '
	. 'xet_token_epoch 1; xet_token_epoch off; }');
bad('xet_token_epoch of three', qr/invalid number of arguments/,
	%sign, locations => 'location /t { xet_token_epoch 1 2 3; }');

good('xet_auth of the server', locations => 'location /api/ { xet_api; }',
	server => 'xet_auth off;');
good('xet_auth at http level', locations => 'location /api/ { xet_api; }',
	http => 'xet_auth off;');

# --------------------------------------------------------------------------
# xet_postgres

for my $conninfo ('host', 'foo=bar', "host='x", 'host=x nonsense') {
	bad("conninfo $conninfo", qr/invalid PostgreSQL connection string: \w/,
		with(xet_postgres => "\"$conninfo\""));
}

good("conninfo $_", with(xet_postgres => "\"$_\"")) for 'dbname=xet',
	'postgresql://xet@localhost:5433/xet', 'host=a,b port=1,2 dbname=x';

my $conninfo = '"dbname=xet"';

for my $param (qw/ reads=0 reads=65 reads=-1 reads=x reads= reads=1.5 reads
	writes=0 writes=65 depth=0 depth=257 queue=0 queue=1000001
	timeout=0 timeout=x timeout= timeout=61m timeout=-1s
	connect_timeout=0 connect_timeout=2h dedup=0 dedup=65
	dedup_timeout=0 dedup_timeout=2h long=0 long=65
	long_timeout=0 long_timeout=2h ping_timeout=0 ping_timeout=x
	foo=1 Reads=2 reads:2
	write_timeout=0 write_timeout=25h write_timeout=
	lock_timeout=0 lock_timeout=25h lock_timeout=x idle=0 idle=999ms
	idle=25h
	timeout=99999999999999999999 queue=99999999999999999999 /)
{
	bad("xet_postgres $param", qr/invalid parameter "\Q$param\E"/,
		with(xet_postgres => "$conninfo $param"));
}

for my $param (qw/ reads=1 reads=64 writes=1 writes=64 depth=1 depth=256
	queue=1 queue=1000000 timeout=1 timeout=1ms timeout=60m
	write_timeout=1ms write_timeout=24h connect_timeout=1s dedup=1
	dedup=64 dedup_timeout=1ms long=1 long=64 long_timeout=1ms
	ping_timeout=1h lock_timeout=1ms lock_timeout=24h idle=1s idle=24h /)
{
	good("xet_postgres $param",
		with(xet_postgres => "$conninfo $param"));
}

good('all parameters', with(xet_postgres => "$conninfo reads=1 writes=2"
	. ' depth=3 queue=4 timeout=5s write_timeout=6s connect_timeout=7s'
	. ' dedup=2 dedup_timeout=8s long=2 long_timeout=8s ping_timeout=9s'
	. ' lock_timeout=1s idle=30s'));

my $out = good('a password', with(xet_postgres
	=> '"dbname=xet password=geheimnis"'));

like($out, qr/\[warn\].*password.*in \S+:\d+/, 'a password: warning');
unlike($out, qr/geheimnis/, 'a password: not shown');

for my $target (qw/ any standby prefer-standby read-only /) {
	bad("target_session_attrs=$target",
		qr/"target_session_attrs" must be "primary" or "read-write"/,
		with(xet_postgres => "\"host=a,b"
			. " target_session_attrs=$target\""));
}

good("target_session_attrs=$_", with(xet_postgres
	=> "\"host=a,b target_session_attrs=$_\""))
	for qw/ primary read-write /;

# --------------------------------------------------------------------------
# xet_postgres_read

sub standby {
	my ($value, $primary) = @_;

	return with(xet_postgres => $primary // $conninfo,
		xet_postgres_read => $value);
}

for my $case (
	[ '"host"', 'invalid PostgreSQL connection string: \w' ],
	[ '"host=a,,b"', 'a host name or port is empty' ],
	[ '"host=a,b,"', 'a host name or port is empty' ],
	[ '"host=a,b port=5432,"', 'a host name or port is empty' ],
	[ '"host=a,b port=1,2,3"', 'the numbers of ports and hosts differ' ],
	[ '"host=a port=1,2"', 'the numbers of ports and hosts differ' ],
	[ '"host=a,b hostaddr=127.0.0.1"',
		'the numbers of hosts and addresses differ' ],
	[ '"host=a,b,a"', 'duplicate host' ],
	[ '"host=a"; xet_postgres_read "host=a"', 'duplicate host' ],
	[ '"host=' . join(',', 1 .. 9) . '"', 'more than 8 hosts' ],
	[ '"host=a target_session_attrs=standby"',
		'"target_session_attrs" is not allowed here' ],
	[ '"host=a dbname=other"', 'names another database than' ],
	[ '"host=a" lag=1s', 'invalid parameter "lag=1s"' ],
	[ '"host=a" lag=61m', 'invalid parameter "lag=61m"' ],
	[ '"host=a" lag=x', 'invalid parameter "lag=x"' ],
	[ '"host=a" lag=', 'invalid parameter "lag="' ],
	[ '"host=a" reads=0', 'invalid parameter "reads=0"' ],
	[ '"host=a" reads=65', 'invalid parameter "reads=65"' ],
	[ '"host=a" timeout=0', 'invalid parameter "timeout=0"' ],
	[ '"host=a" timeout=2h', 'invalid parameter "timeout=2h"' ],
	[ '"host=a" depth=4', 'invalid parameter "depth=4"' ],
	[ '"host=a" lag=3s lag=4s', 'duplicate parameter "lag=4s"' ],
	[ '"host=a" reads=1 reads=1', 'duplicate parameter "reads=1"' ],
	[ '"host=a" timeout=1s timeout=1s',
		'duplicate parameter "timeout=1s"' ])
{
	bad("xet_postgres_read $$case[0]", qr/$$case[1]/, standby($$case[0]));
}

good("xet_postgres_read $_", standby($_)) for '"host=a"', '""',
	'"host=a,b,c port=5433 dbname=xet" lag=2s reads=64 timeout=1ms',
	'"host=a,a port=1,2"', '"host=a"; xet_postgres_read "host=b" lag=1h',
	'"postgresql://xet@a:1,b:2/xet"', '"host=a target_session_attrs=any"',
	'"host=x,y hostaddr=127.0.0.1,127.0.0.2"',
	'"host=' . join(',', 1 .. 8) . '"';

bad('standbys without a primary', qr/"xet_postgres_read" requires/,
	with(xet_postgres => undef, xet_postgres_read => '"host=a"'));

$out = good('a password of a standby',
	standby('"host=a password=geheimnis"'));

like($out, qr/\[warn\].*password.*in \S+:\d+/,
	'a password of a standby: warning');
unlike($out, qr/geheimnis/, 'a password of a standby: not shown');

# --------------------------------------------------------------------------
# key files

my %good_keys = (
	'one key' => "url:k1:$odd_secret\n",
	'without a newline' => "url:a:$odd_secret",
	'with CRLF' => "url:a:$odd_secret\r\n",
	'of upper case' => 'url:A-_9:' . uc($odd_secret),
	'of 64 bytes' => "url:k1:$odd_secret$odd_secret",
	'a long id' => 'url:' . 'i' x 16 . ":$odd_secret",
	'several, comments' => "# x\n\nurl:b:$odd_secret\n#y\n"
		. "url:a:$old_secret\n\n"
);

for my $name (sort keys %good_keys) {
	no_secrets("url key $name", good("url key $name", with(xet_url_key
		=> key_file('good', $good_keys{$name}))));
}

good('url key readable by its group', with(xet_url_key
	=> key_file('group', "url:k1:$odd_secret\n", 0640)));

my %bad_keys = (
	'too short' => 'url:k1:' . substr($odd_secret, 0, 62),
	'too long' => "url:k1:$odd_secret${odd_secret}00",
	'of an odd length' => "url:k1:${odd_secret}0",
	'not hex' => 'url:k1:' . substr($odd_secret, 0, 62) . 'zz',
	'with a sign' => 'url:k1:' . substr($odd_secret, 0, 62) . '-1',
	'with a blank' => "url:k1: $odd_secret",
	'without an id' => "url:$odd_secret",
	'without a purpose' => "k1:$odd_secret", 'bare' => $odd_secret,
	'of another purpose' => "token:k1:$odd_secret",
	'a second one of another' => "url:k2:$old_secret\ndedup:$odd_secret",
	'with an empty id' => "url::$odd_secret",
	'with a long id' => 'url:' . 'i' x 17 . ":$odd_secret",
	'with a dot in its id' => "url:k.1:$odd_secret",
	'with a blank before it' => " url:k1:$odd_secret",
	'of two parts' => "url:k1:$odd_secret:$odd_secret",
	'an id alone' => 'url:k1:',
	'the second too short' => "url:k1:$old_secret\nurl:k2:"
		. substr($odd_secret, 0, 62),
	'a NUL' => "url:k1:$odd_secret\0",
);

for my $name (sort keys %bad_keys) {
	bad("url key $name", qr/invalid key in "\S+", line \d+: the key/,
		with(xet_url_key => key_file('bad', $bad_keys{$name})));
}

bad('url key twice', qr/duplicate key id "k1" in "\S+"/, with(xet_url_key
	=> key_file('bad', "url:k1:$odd_secret\nurl:k2:$odd_secret\n"
		. "url:k1:$old_secret")));
bad('no url key', qr/no key in "\S+"/, with(xet_url_key
	=> key_file('bad', "# nothing\n\n")));
bad('an empty url key file', qr/no key in "\S+"/, with(xet_url_key
	=> key_file('bad', '')));

my %bad_dedup = (
	'too short' => 'dedup:' . substr($odd_secret, 0, 62),
	'too long' => "dedup:${odd_secret}00",
	'not hex' => 'dedup:' . substr($odd_secret, 0, 62) . 'zz',
	'with an id' => "dedup:k1:$odd_secret", 'bare' => $odd_secret,
	'of another purpose' => "url:k1:$odd_secret",
	'two' => "dedup:$odd_secret\ndedup:$old_secret\n",
);

for my $name (sort keys %bad_dedup) {
	bad("dedup key $name", qr/invalid key in "\S+", line \d+: the/,
		with(xet_dedup_key => key_file('bad', $bad_dedup{$name})));
}

bad('an empty dedup key', qr/no key in "\S+"/, with(xet_dedup_key
	=> key_file('bad', '')));

good('dedup key without a newline', with(xet_dedup_key
	=> key_file('good', "dedup:$odd_secret")));
good('dedup key with CRLF', with(xet_dedup_key
	=> key_file('good', "dedup:$odd_secret\r\n")));

for my $name (qw/ xet_url_key xet_dedup_key /) {
	my $content = $name eq 'xet_url_key' ? "url:k1:$odd_secret"
		: "dedup:$odd_secret";

	bad("$name missing", qr/open\(\) "\S+nowhere" failed.*No such file/,
		with($name => '%%DIR%%/nowhere'));
	bad("$name a folder", qr/is not a key file/,
		with($name => '%%DIR%%/store'));
	bad("$name too large", qr/is not a key file/, with($name
		=> key_file('large', "$content\n" . "# x\n" x 1100)));
	bad(sprintf("$name with mode %o", $_), qr/must not be accessible/,
		with($name => key_file('open', $content, $_)))
		for 0604, 0644, 0602, 0601, 0620, 0666;

	bad("$name unreadable", qr/open\(\) "\S+" failed.*denied/,
		with($name => key_file('closed', $content, 0)), weak => 1);

	# a path relative to the folder of the configuration file

	key_file('relative', $content);
	good("$name relative", with($name => 'keys/relative'));
}

# --------------------------------------------------------------------------
# xet_store

$t->write_file('a_file', 'x');

bad('xet_store missing', qr/stat\(\) ".*nowhere" failed.*No such file/,
	with(xet_store => '%%DIR%%/nowhere'));
bad('xet_store a file', qr/"\S+a_file" is not a directory/,
	with(xet_store => '%%DIR%%/a_file'));
bad('xet_store temp=x', qr/invalid parameter "temp=x"/,
	with(xet_store => '%%STORE%% temp=x'));
bad('xet_store too long', qr/path is too long/,
	with(xet_store => '/' . 'x' x 4090));
good("xet_store $_", with(xet_store => $_)) for '%%STORE%% temp=named',
	'%%STORE%% temp=anonymous', '%%STORE%%///', 'store', '/tmp';

# --------------------------------------------------------------------------
# background jobs

bad("xet_scrub $_", qr/invalid parameter/, with(xet_scrub => $_))
	for 'x', 'off rate=1m', 'on rate=', 'on rate=65535', 'on rate=17g',
	'on rate=x', 'on rate=-1', 'on interval=0', 'on interval=999ms',
	'on interval=367d', 'on interval=x', 'on x=1', 'rate=1m', 'On';
bad('xet_scrub twice', qr/is duplicate/, with(xet_scrub => 'on; xet_scrub on'));
bad('xet_scrub of four', qr/invalid number of arguments/,
	with(xet_scrub => 'on rate=1m interval=1d rate=2m'));
bad('xet_scrub in a location', qr/directive is not allowed here/,
	location('xet_scrub on;'));
good("xet_scrub $_", with(xet_scrub => $_)) for 'off', 'on', 'on rate=64k',
	'on rate=16g interval=1s', 'on interval=366d',
	'on interval=30d rate=1g';

mkdir($t->dir() . '/a_peer');
bad("xet_store_peer $_", qr/takes a URL without user, query or fragment/,
	with(xet_store_peer => $_)) for 'http://me:secret@node/api',
	'http://node/api?x', "'http://node/#x'", "'http://node/a b'";
bad("xet_store_peer $_", qr/ in "\Q$_\E" of "xet_store_peer"/,
	with(xet_store_peer => $_)) for 'http://', 'https:///api',
	'http://node:99999/', 'http://node:x/', 'http://:80/';
bad('xet_store_peer of a socket', qr/does not take a Unix socket/,
	with(xet_store_peer => 'http://unix:/run/x:/api'));
bad('xet_store_peer of a long URL', qr/URL is too long/,
	with(xet_store_peer => 'http://node/' . 'x' x 1024));
bad("xet_store_peer $_", qr/invalid parameter/, with(xet_store_peer => $_))
	for 'http://node token=', 'http://node x=1',
	'http://node timeout=999ms', 'http://node timeout=2h',
	'http://node timeout=x', '/tmp timeout=1s',
	'http://node trusted_certificate=', 'http://node on';
bad("xet_store_peer $_", qr/duplicate/, with(xet_store_peer => $_))
	for 'http://node timeout=1s timeout=1s';
bad('xet_store_peer: no such token', qr/open\(\) ".*nowhere" failed/,
	with(xet_store_peer => 'https://node token=%%DIR%%/nowhere'));
bad('xet_store_peer: no certificate', qr/no certificate in ".*url.key"/,
	with(xet_store_peer => 'https://node trusted_certificate=%%URL_KEY%%'));
bad("xet_store_peer: a certificate of $_", qr/with "https:\/\/" only/,
	with(xet_store_peer => "$_ trusted_certificate=%%URL_KEY%%"))
	for 'http://node', 'HTTP://node:443';

for (
	[ open => "abc\n", 0644, qr/must not be accessible by others/ ],
	[ empty => " \n", 0600, qr/no token in/ ],
	[ two => "a b\n", 0600, qr/no token in/ ],
	[ lines => "a\nb\n", 0600, qr/no token in/ ],
	[ large => 'x' x 8193, 0600, qr/is not a key file/ ]
) {
	my ($name, $text, $mode, $why) = @$_;

	chmod($mode, $t->write_file("token.$name", $text));
	bad("xet_store_peer, token file: $name", $why, with(xet_store_peer =>
		"https://node token=%%DIR%%/token.$name"));
}

chmod(0600, $t->write_file('token.good', "abc.def\n"));
like(good("xet_store_peer $_", with(xet_store_peer => $_)),
	qr/\[warn\].*is sent unencrypted/, "$_: a warning")
	for 'http://node/api token=token.good';
unlike(good("xet_store_peer $_", with(xet_store_peer => $_)), qr/\[warn\]/,
	"$_: no warning") for 'http://node/api/ timeout=1h', 'HTTPS://node',
	'https://node:444/api token=token.good', 'http://[::1]:80/api',
	'http://127.0.0.1/api token=%%DIR%%/token.good timeout=1s';
bad('xet_store_peer too long', qr/path is too long/,
	with(xet_store_peer => '/' . 'x' x 4090));
bad("xet_store_peer $_", qr/is the store itself/,
	with(xet_store_peer => $_)) for '%%STORE%%', '%%STORE%%/',
	'%%STORE%%/../store';
like(good('xet_store_peer missing',
	with(xet_store_peer => '%%DIR%%/nowhere')),
	qr/\[warn\].*"xet_store_peer" does not exist/,
	'a peer that is not there');
unlike(good("xet_store_peer $_", with(xet_store_peer => $_)), qr/\[warn\]/,
	"$_: no warning") for '%%DIR%%/a_peer', '%%DIR%%/a_peer/', 'a_peer',
	'%%DIR%%/a_peer; xet_store_peer /tmp';

# --------------------------------------------------------------------------
# values

# values on both sides of each numeric bound in the table of directives

my $bounded = 0;

for my $row (@{ module_table('directives') }) {
	my ($name, $unit) = ($row->{name}, $row->{kind} eq 'MSEC' ? 'ms' : '');
	my ($low, $high) = map { eval } $row->{post} =~
		/^XET_BOUNDS\(([\d *]+), ([\d *]+)\)$/ or next;
	my $set = sub {
		return $row->{context} eq 'http' ? with($name => "$_[0]$unit")
			: location("$name $_[0]$unit;");
	};

	$bounded++;

	good("$name $_", $set->($_)) for $low, $high;
	bad("$name $_", qr/value must be between $low and $high/, $set->($_))
		for $low - 1 < 0 ? () : $low - 1, $high + 1;
}

cmp_ok($bounded, '>=', 8, 'directives with bounds');

bad("xet_api_base $_", qr/"xet_api_base" must be empty or begin/,
	location("xet_api_base $_;")) for '/cas/', 'cas', '/', 'cas/', '//';
good("xet_api_base $_", location("xet_api_base $_;"))
	for '/cas', '/a/b/c', '""';

bad("xet_url_ttl $_", qr/value must be between 60 and 31622400/,
	location("xet_url_ttl $_;")) for '59s', 0, 1, '367d', '31622401';
bad("xet_url_ttl $_", qr/"xet_url_ttl" directive invalid value/,
	location("xet_url_ttl $_;")) for 'x', '-1', '1ms';
good("xet_url_ttl $_", location("xet_url_ttl $_;")) for '60s', '30d',
	'366d';

bad("xet_url_quantum $_", qr/value must be between 1 and 31622400/,
	location("xet_url_quantum $_;")) for 0, '367d';
good("xet_url_quantum $_", location("xet_url_quantum $_;")) for 1, '366d';
bad('xet_url_mode x', qr/invalid value "x"/, location('xet_url_mode x;'));
good("xet_url_mode $_", location("xet_url_mode $_;"))
	for qw/ strict cacheable /;

bad("xet_url_ranges $_", qr/value must be|invalid number/,
	location("xet_url_ranges $_;")) for 0, 513, -1, 'x', '1k';
good("xet_url_ranges $_", location("xet_url_ranges $_;")) for 1, 512;

bad("xet_plan_terms $_", qr/value must be|invalid number/,
	location("xet_plan_terms $_;")) for 8191, 16777217, -1, 'x', '1k';
good("xet_plan_terms $_", location("xet_plan_terms $_;")) for 8192, 4000000;
bad("xet_plan_buffer $_", qr/"xet_plan_buffer" must be at least \d+k/,
	location("xet_plan_buffer $_;")) for '128k', '1k', 0;
good('xet_plan_buffer', location('xet_plan_terms 8192; xet_plan_buffer 64k;'));
bad('xet_plan_buffer for many terms', qr/must be at least 512k for 16000000/,
	location('xet_plan_terms 16000000; xet_plan_buffer 256k;'));

bad("xet_body_buffer $_", qr/"xet_body_buffer" must be at least 16k/,
	location("xet_body_buffer $_;")) for '16383', '1k', 0;
bad("xet_read_buffer $_", qr/"xet_read_buffer" must be at least 128k/,
	location("xet_read_buffer $_;")) for '131071', '1k', 0;
bad('xet_read_buffer x', qr/"xet_read_buffer" directive invalid value/,
	location('xet_read_buffer x;'));
good("xet_read_buffer $_", location("xet_read_buffer $_;"))
	for qw/ 131072 128k 1m /;
bad('xet_body_buffer x', qr/"xet_body_buffer" directive invalid value/,
	location('xet_body_buffer x;'));
good("xet_body_buffer $_", location("xet_body_buffer $_;"))
	for '16k', '16384', '4m';

bad("xet_xorb_max_size $_", qr/"xet_xorb_max_size" must be at least/,
	location("xet_xorb_max_size $_;")) for 0, 131079, '4096m', '4294967296';
good("xet_xorb_max_size $_", location("xet_xorb_max_size $_;"))
	for 131080, '4294967295', '64m', '4095m';

bad("xet_retry_after $_", qr/invalid value/,
	location("xet_retry_after $_;")) for 'x', '-1';
good("xet_retry_after $_", location("xet_retry_after $_;")) for 0, '1m';

bad("xet_dedup_period $_", qr/value must be between 3600 and 31622400/,
	with(xet_dedup_period => $_)) for '59m', 3599, 0, '367d';
bad('xet_dedup_period x', qr/"xet_dedup_period" directive invalid value/,
	with(xet_dedup_period => 'x'));
good("xet_dedup_period $_", with(xet_dedup_period => $_)) for '1h', '366d';

bad("xet_hosts $_", qr/invalid name .* in "xet_hosts"/,
	location("xet_hosts '$_';")) for 'http://a.example', 'a.example:80',
	'*.example', 'a.', 'a b', '$host';
bad('xet_hosts twice', qr/"xet_hosts" directive is duplicate/,
	location('xet_hosts a; xet_hosts b;'));
good('xet_hosts', location('xet_hosts a.example 10.0.0.1 [::1];'));

bad('xet_progress_interval x', qr/invalid value/,
	location('xet_progress_interval x;'));

bad('an unknown thread pool', qr/unknown thread pool "nope"/,
	with(xet_thread_pool => 'nope'));
bad('an unknown pool of reads', qr/unknown thread pool "nope"/,
	with(xet_read_thread_pool => 'nope'));
good('nginx\'s own pool for reads', with(xet_read_thread_pool => 'default'));

# --------------------------------------------------------------------------
# duplicate directives

for my $name (qw/ xet_store xet_postgres xet_url_key xet_dedup_key
	xet_dedup_period xet_thread_pool xet_read_thread_pool /)
{
	my %value = (xet_store => '%%STORE%%', xet_postgres => $conninfo,
		xet_url_key => '%%URL_KEY%%', xet_dedup_key => '%%DEDUP_KEY%%',
		xet_dedup_period => '1h', xet_thread_pool => 'xet',
		xet_read_thread_pool => 'default');

	bad("$name twice", qr/"$name" directive is duplicate/,
		with($name => "$value{$name}; $name $value{$name}"));
}

for my $line ('xet_api', 'xet_auth off', 'xet_api_base /api',
	'xet_url_base http://x', 'xet_url_ttl 1h', 'xet_url_ranges 2',
	'xet_xorb_max_size 1m', 'xet_body_buffer 1m', 'xet_read_buffer 1m',
	'xet_retry_after 1s',
	'xet_url_quantum 1m', 'xet_url_mode strict', 'xet_cors *',
	'xet_progress_interval 1s', 'xet_hub_pages off')
{
	my ($name) = split(/ /, $line);
	my $twice = $line =~ /xet_api$|xet_auth/ ? "$line;" : "$line; $line;";

	bad("$name twice", qr/"$name" directive is duplicate/,
		location($twice));
}

bad('xet_data twice', qr/"xet_data" directive is duplicate/,
	locations => 'location /x/ { xet_data; xet_data; }');

# --------------------------------------------------------------------------
# contexts, and numbers of arguments

my %main = (xet_store => '/tmp', xet_postgres => $conninfo,
	xet_postgres_read => $conninfo,
	xet_url_key => '%%URL_KEY%%', xet_dedup_key => '%%DEDUP_KEY%%',
	xet_dedup_period => '1h', xet_thread_pool => 'xet',
	xet_read_thread_pool => 'default');

for my $name (sort keys %main) {
	bad("$name in a server", qr/"$name" directive is not allowed here/,
		server => "$name $main{$name};");
	bad("$name in a location", qr/"$name" directive is not allowed here/,
		location("$name $main{$name};"));
	bad("$name outside of http", qr/"$name" directive is not allowed here/,
		main => "$name $main{$name};");
	bad("$name without a value", qr/number of arguments in "$name"/,
		with($name => ''));
	bad("$name with more", qr/number of arguments in "$name"/,
		with($name => "$main{$name} a b"
			. ' c d' x ($name =~ /_read$/)))
		if $name !~ /^xet_(?:postgres|store)$/;
}

bad('xet_store with more', qr/invalid parameter "b"/,
	with(xet_store => "$main{xet_store} temp=named b"));
bad('xet_store with something', qr/invalid parameter "a"/,
	with(xet_store => "$main{xet_store} a"));
bad('xet_store: a bucket without keys', qr/needs "endpoint=" and/,
	with(xet_store => 's3://models endpoint=http://127.0.0.1:1'));
bad('xet_store: keys that are not there', qr/no\.such/,
	with(xet_store => 's3://models path_style endpoint=http://[::1]:1'
		. ' credentials=no.such'));
bad('xet_store: a bucket with something', qr/invalid parameter "part=1m"/,
	with(xet_store => 's3://models path_style endpoint=http://[::1]:1'
		. ' credentials=no.such part=1m'));
bad('xet_data_mode: a folder', qr/needs a bucket in "xet_store"/,
	location('xet_data_mode presigned;'));
bad('xet_grants: a folder', qr/needs a bucket in "xet_store"/,
	location('xet_grants on;'));

for my $name (qw/ xet_api xet_data xet_error /) {
	bad("$name in a server", qr/"$name" directive is not allowed here/,
		server => "$name;");
	bad("$name at http level", qr/"$name" directive is not allowed here/,
		http => "$name;");
	bad("$name in an if", qr/"$name" directive is not allowed here/,
		locations => "location /x/ { if (\$arg_x) { $name; } }");
	bad("$name with a value", $name eq 'xet_error'
		? qr/invalid parameter "on" .* it must be "hub"/
		: qr/number of arguments in "$name"/,
		locations => "location /x/ { $name on; }");
}

bad('xet_error twice', qr/"xet_error" directive is duplicate/,
	locations => 'location /x/ { xet_error; xet_error hub; }');

# --------------------------------------------------------------------------
# a Hub

my %keyed = (http => Test::Xet::Token::token_directive());
my $cas = 'location /cas/ { xet_api; xet_api_base /cas; xet_auth token;'
	. ' xet_access repo; client_max_body_size 80m; }';

$t->token_key();

good('xet_hub', %keyed, locations => "location / { xet_hub on; xet_auth off;"
	. " xet_api_base /cas; } $cas");
good('xet_hub off', %keyed, locations => "location / { xet_hub off; } $cas");
bad("xet_hub in a server", qr/"xet_hub" directive is not allowed here/,
	server => 'xet_hub on;');
bad('xet_hub perhaps', qr/invalid parameter "perhaps" .*"on" or "off"/,
	locations => 'location /x/ { xet_hub perhaps; }');
bad('xet_hub twice', qr/"xet_hub" directive is duplicate/,
	locations => 'location /x/ { xet_hub on; xet_hub on; }');
bad('xet_hub without a key', qr/"xet_hub" needs a secret or a private key/,
	locations => 'location /x/ { xet_hub on; xet_auth off; }');
bad('xet_hub without xet_auth', qr/"xet_hub" needs "xet_auth"/, %keyed,
	locations => 'location /x/ { xet_hub on; }');
bad("xet_hub_base $_", qr/"xet_hub_base" must be empty or begin with/, %keyed,
	locations => "location /x/ { xet_hub on; xet_auth off;"
		. " xet_hub_base $_; }") for qw! x /x/ /!;
bad("xet_hub_pages $_", qr/"xet_hub_pages" must be "off" or begin with/, %keyed,
	locations => "location /x/ { xet_hub on; xet_auth off;"
		. " xet_hub_pages $_; }") for qw! yes on index.html !;

for my $line ('xet_auth off', 'xet_api_base /x', 'xet_url_base http://x',
	'xet_url_ttl 1h', 'xet_url_ranges 2', 'xet_xorb_max_size 1m',
	'xet_body_buffer 1m', 'xet_read_buffer 1m',
	'xet_retry_after 1s')
{
	my ($name) = split(/ /, $line);

	my @none = $name eq 'xet_auth' ? (locations => '')
		: $name eq 'xet_url_base' ? with(xet_url_base => undef) : ();

	good("$name in a server", server => "$line;", @none);
	good("$name at http level", http => "$line;", @none);
	good("$name in a location", location("$line;"))
		if $name ne 'xet_auth';
	bad("$name with more", $name eq 'xet_url_base'
		? qr/invalid URL "x"/ : qr/number of arguments in "$name"/,
		server => "$line x;");
	bad("$name without a value", qr/number of arguments in "$name"/,
		server => "$name;");
	bad("$name outside of http", qr/"$name" directive is not allowed/,
		main => "$line;");
}

# directives of the module combined with nginx directives

for my $line ('max_ranges 2', 'etag off', 'etag on', 'limit_rate 1m') {
	good("$line before xet_data",
		locations => "location /x/ { $line; xet_data; }");
	good("$line after xet_data",
		locations => "location /x/ { xet_data; $line; }");
}

# --------------------------------------------------------------------------
# conf/nginx.conf, as docker/run.sh writes it

my $sample = $t->shipped_conf();
my $location = $t->read_file('xet_location.conf');

unlike($sample, qr{/var/|/run/|/etc/nginx/(?!mime)},
	'no other path of the system');

(my $good, $out) = $t->config_test($sample);

ok($good, 'conf/nginx.conf') or diag($out);
unlike($out, qr/\[warn\]/, 'conf/nginx.conf: no warnings');
like($sample, qr/^ *large_client_header_buffers \d+ 72k;/m,
	'trap 43: headers of 64 KiB');
is(scalar(() = $location =~ /^ *(?:client_body|send)_timeout 300s;/mg), 3,
	'trap 44: idle gaps of a client with many transfers');

$t->write_conf($sample);
$t->run();

my $data = mix(1, 300000);
my $file = $t->upload($data);

sub works {
	my ($name, %o) = @_;

	my $d = $t->download($file->{hash}, size => length($data), %o);

	is_deeply($d->{errors}, [], "$name: a download");
	ok(($d->{data} // '') eq $data, "$name: its data");

	return $d;
}

works('conf/nginx.conf');

# access is controlled by the server block, never by the file that it includes

$t->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');

(my $silent = $sample) =~ s/^ *xet_auth off;$//m or die;
bad('the include in a server that says nothing',
	qr/"xet_api" needs "xet_auth"/, conf => $silent);

(my $closed = $sample) =~ s!xet_auth off;!xet_auth token;!;
$closed =~ s!(?=xet_url_key )!xet_token_key %%DIR%%/token.key; !;
$t->write_conf($closed);
$t->reload();

is($t->get("/api/v1/reconstructions/$file->{hash}")->{status}, 401,
	'the include in a server with tokens: read');
is($t->put('/api/v1/files', \$data)->{status}, 401, 'write');
is($t->post('/v1/telemetry', '{}')->{status}, 401, 'telemetry');
is($t->get('/api/health')->{status}, 200, 'health');

# --------------------------------------------------------------------------
# other configurations that run

$t->write_conf(undef, locations => <<'EOF');
location /cas/ {
            xet_api;
            xet_auth         off;
            xet_api_base     /cas;
            xet_url_ttl      2m;
            xet_url_quantum  1s;

            location /cas/v1/xorbs/ {
                xet_api;
                xet_xorb_max_size  140000;
            }
        }

        location / {
            xet_api;
            xet_auth       off;
            xet_api_base   "";
            xet_url_base   http://127.0.0.1:%%PORT_8080%%/data/;
        }

        location ~ ^/re/v[12]/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /re;
        }

        location /other/ {
            xet_api;
            xet_auth  off;
        }

        location /xorbs/ {
            xet_data;
        }

        location /data/xorbs/ {
            xet_data;
            alias  %%STORE%%/xorbs/;
        }
EOF
$t->reload();

my $d = works('xet_api_base /cas', base => '/cas');
my ($e) = map { $_->[0]{url} =~ /&e=(\d+)/ } values %{ $d->{plan}{xorbs} };

ok($e > time() + 100 && $e <= time() + 120, 'xet_url_ttl');

works('xet_api_base ""', base => '');
works('a regex location', base => '/re');

is($t->upload(mix(2, 100000), base => '/cas/v1')->{result}, 1,
	'a location within');
is($t->upload(mix(3, 100000), base => '/v1')->{result}, 1,
	'an upload to the root');
is(eval { $t->upload(random_bytes(4, 300000), base => '/cas/v1') } // $@
	=~ /: 413 / ? 413 : $@, 413, 'xet_xorb_max_size of the location');

my $r = $t->get("/other/v1/reconstructions/$file->{hash}");

is_deeply([ $r->{status}, $r->json()->{error}{code} ], [ 404, 'no_route' ],
	'a location that is not the base');

# named temporary files, and a relative path for the store

$t->write_conf(undef, locations => undef, directives => {
	xet_store => 'store temp=named', xet_thread_pool => undef });
$t->reload();

works('a relative store');
is($t->upload(random_bytes(5, 300000))->{result}, 1, 'temp=named');
ok(wait_for(5, sub { !$t->temp_files() }), 'temp=named: nothing left');

# a failed reload does not change anything

my $from = $t->log_size();

$t->allow(qr/\[emerg\].*(?:invalid key|xet_store)/);
$t->write_file('url.key', 'url:k1:' . substr($odd_secret, 0, 60) . "\n");
$t->reload(wait => 0);
ok($t->wait_log(qr/\[emerg\].*invalid key in/, 10, $from),
	'a reload with a bad key');
works('a reload with a bad key');

$t->write_file('url.key', "url:k9:$odd_secret\nurl:k1:$url_secret\n");
$t->write_conf(undef, directives => {});
$t->reload();
works('a reload with a good one');

# --------------------------------------------------------------------------
# no error message contains a secret

my $password = 'Pa55w0rd-of-the-test';

$t->write_conf(undef, directives => { xet_postgres => '"'
	. $t->conninfo() . " password=$password\"" });
$t->reload();
works('a password');

$t->get("/xorbs/default/00/$file->{hash}?r=0-9&e=1&k=k1&s=" . 'A' x 43,
	{ Range => 'bytes=0-9' });
$t->get("/api/v1/chunks/default/$file->{xorbs}[0]{chunks}[0]{hash}");
$t->pg_stop();
is($t->get('/api/v1/health')->{status}, 503, 'without PostgreSQL');
ok($t->wait_log(qr/connecting to PostgreSQL failed/, 5), 'is logged');
$t->pg_start();
ok(wait_for(15, sub { $t->get('/api/v1/health')->{status} == 200 }),
	'PostgreSQL is back');
is($t->download($file->{hash}, base => '/api')->{status}, 200,
	'a request after that');

my $log = $t->log();

like($log, qr/\[debug\]/, 'the log has it all');
no_secrets('the log', $log);
no_secrets('the access log', $t->read_file('access.log'));
is(index($log, $password), -1, 'no password in the log');

# --------------------------------------------------------------------------
# a single process

$t->stop();
$t->write_conf(undef, directives => {}, main => 'master_process off;');
$t->run();

works('master_process off');
is($t->upload(mix(6, 200000))->{result}, 1, 'master_process off: upload');

$t->done();
