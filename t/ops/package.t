#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The packages, built for the Debian release of this machine and installed in a
# small separate Debian: one command sets up a server, which stores and returns
# files.  Then the packages are upgraded with data and a changed configuration,
# and to another schema; removed, reinstalled and purged.  The systemd units are
# checked as far as possible without systemd.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Chroot;
use Test::Xet::Process qw/ root run_command slurp spew /;

use Digest::SHA qw/ sha256_hex /;
use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;

for my $program (qw/ dpkg-buildpackage dh dh_nginx /) {
	plan(skip_all => "needs $program") unless -x "/usr/bin/$program";
}

my $c = Test::Xet::Chroot->new();

plan(skip_all => $c->{lacks}) if $c->{lacks};

my $api = 'http://127.0.0.1:8080/api';
my @names = qw/ libnginx-mod-http-xet xet-tools /;

# --------------------------------------------------------------------------
# the packages are built twice: this version, and the next one

sub build {
	my ($revision) = @_;

	my ($status, $out, @built) = $c->packages($revision);

	is($status, 0, "revision $revision: built") or BAIL_OUT($out);

	return \@built;
}

my @debs = map { build($_) } 1, 2;

is(scalar(@{ $debs[0] }), 2, 'two packages');

SKIP: {
	skip('no lintian', 1) unless -x '/usr/bin/lintian';

	my ($status, $out) = run_command([ 'lintian',
		'--allow-root', '--fail-on', 'error,warning', @{ $debs[0] } ],
		timeout => 300);

	is($status, 0, 'lintian') or diag($out);
}

# The module and xet are compiled with hardening flags.

for my $deb (@{ $debs[0] }) {
	my $dir = tempdir('xet-deb-XXXXXX', TMPDIR => 1, CLEANUP => 1);
	my ($name) = $deb =~ m!([^/]+)_!;

	system('dpkg-deb', '-x', $deb, $dir) == 0 or die "dpkg-deb: $?\n";

	my ($file) = grep { -f } glob("$dir/usr/lib/nginx/modules/*.so"),
		"$dir/usr/bin/xet";
	my $symbols = `readelf -W --dyn-syms $file`;

	like($symbols, qr/ __stack_chk_fail@/, "$name: the stack is guarded");
	like($symbols, qr/ __(?:memcpy|snprintf)_chk@/, "$name: fortified");
	like(`readelf -d $file`, qr/\bBIND_NOW\b/, "$name: bound at start");
}

# The version is defined in one place.

my ($version) = slurp(root() . '/src/core/base/xet_base.h')
	=~ /^#define XET_VERSION\s+"(.*)"$/m;

like($_, qr/_\Q$version\E-1~deb$c->{version}_/, 'its version: ' . s!.*/!!r)
	for @{ $debs[0] };

# --------------------------------------------------------------------------
# installation

my $depends = `dpkg-deb -f $debs[0][0] Depends`;
my $why = $c->fetch(qw/ nginx postgresql curl /,
	grep { /^(?:lib|node-)/ } map { /^([\w.+-]+)/ ? $1 : () }
	split(/, */, join(', ', map { `dpkg-deb -f $_ Depends` }
	@{ $debs[0] })));

is($why, undef, 'what they need was fetched') or BAIL_OUT($why);

$c->start();

sub install {
	my ($name, @files) = @_;

	my @inside = map {
		my ($file) = m!([^/]+)$!;
		m!/! ? $c->put($file, slurp($_)) : $_;
	} @files;

	my ($status, $out) = $c->run([ 'apt-get', 'install', '-y',
		'-o', 'Dpkg::Options::=--force-confdef',
		'-o', 'Dpkg::Options::=--force-confold', @inside ],
		timeout => 300);

	is($status, 0, "$name: installed") or BAIL_OUT($out);

	return $out;
}

sub good {
	my ($name, $text) = @_;

	my ($status, $out) = $c->sh($text);

	is($status, 0, $name) or diag($out);

	return $out;
}

sub code {
	my ($url, @args) = @_;

	return ($c->run([ 'curl', '-s', '-o', '/dev/null', '-m', '30',
		'-w', '%{http_code}', @args, $url ]))[1];
}

sub master {
	my ($pid) = (($c->run([ 'cat', '/run/nginx.pid' ]))[1] =~ /^(\d+)$/);

	return $pid;
}

# Returns a block of commands from docs/install.md.  apt is configured to answer
# its questions with "yes".

sub typed {
	my ($name) = @_;

	my ($text) = slurp(root() . '/docs/install.md')
		=~ /^<!-- package: $name -->\n```sh\n(.*?)^```$/ms
		or BAIL_OUT("no block $name in docs/install.md");

	return "cd /mnt\n$text";
}

$c->put(m!([^/]+)$!, slurp($_)) for @{ $debs[0] };
$c->put('yes', qq(APT::Get::Assume-Yes "true";\n));
good('yes', 'cp /mnt/yes /etc/apt/apt.conf.d/');

my ($installing, $setup) = typed('install') =~ /^(.*)^(xet-setup)\n\z/ms;
my ($status, $out) = $c->sh($installing, timeout => 300);

is($status, 0, 'the commands of docs/install.md') or BAIL_OUT($out);

good('nginx takes its configuration', 'nginx -t -q');
good('the module is enabled', 'nginx -T 2>/dev/null |
	grep -q "^load_module modules/ngx_http_xet_module.so;"');
good('nothing is served by it yet',
	'! ls /etc/nginx/conf.d/xet* /etc/nginx/xet/*.key /var/lib/xet');
good('the version', qq(test "\$(xet --version)" = "xet $version"));

good('PostgreSQL runs', 'pg_lsclusters -h | grep -q online');
good('nginx runs', 'service nginx status > /dev/null');
is(code('http://127.0.0.1/'), 200, 'the page of nginx');

# Checks that xet-setup reports an error, and that other sites still work.

sub bad {
	my ($name, $code, $why, $text) = @_;

	my ($status, $out) = $c->sh($text);

	is($status >> 8, $code, "$name: refused");
	like($out, $why, "$name: says so");
}

bad('no such option', 2, qr/^xet-setup: unknown option --non.*\nxet-setup \[/,
	'xet-setup --nonsense');
bad('a URL', 1, qr/the value of --url has an unsupported/,
	'xet-setup --url "http://x;"');
bad('a connection string, whose password is not shown', 1,
	qr/\A(?!.*s3cret).*the value of --postgres has an unsupported/s,
	'xet-setup --postgres "host=x password=s3cret!"');
bad('a certificate for nobody', 1, qr!--cert requires --url https:!,
	'xet-setup --cert /etc/passwd --cert-key /etc/passwd');
bad('a certificate without its key', 1, qr!must be set together!,
	'xet-setup --url https://x --cert /etc/passwd');
bad('no such certificate', 1, qr!cannot read /mnt/none!,
	'xet-setup --url https://x --cert /mnt/none --cert-key /mnt/none');
bad('a path', 1, qr!without a path!, 'xet-setup --url https://x/y'
	. ' --cert /etc/passwd --cert-key /etc/passwd');
bad('a mistake of others', 1, qr!rejects its configuration with .* in /etc!,
	'echo nonsense > /etc/nginx/conf.d/mistake.conf; xet-setup');
good('a mistake of others: nothing of ours is enabled',
	'rm /etc/nginx/conf.d/mistake.conf && nginx -t -q &&
	! ls -d /etc/nginx/conf.d/xet* /etc/nginx/modules-enabled/60-xet*');

$out = good('xet-setup', "$setup 2>&1");

is(code("$api/health"), 200, 'the server is healthy');
like($out, qr/xet token --key/, 'how to get a token is said');

my $sums = 'cd /etc/nginx/xet && sha256sum *.key env *.conf \
	/etc/postgresql/*/main/pg_hba.conf \
	/etc/postgresql/*/main/pg_ident.conf';
my $before = good('what it made', $sums);

is(code(s!/api$!/metrics!r), 200, 'what it counts') for $api;
is(code(s!/api$!/status!r), 200, 'its page') for $api;
good('what xet has to know', '. /etc/nginx/xet/env && xet ls &&
	xet backup /mnt/backup && xet backup --verify /mnt/backup &&
	test "$XET_ENDPOINT" = http://127.0.0.1:8080/api');
good('alerts', 'test -s /usr/share/xet/conf/xet_alerts.yml');
good('keys are for root', 'test -z "$(find /etc/nginx/xet \
	\( -name "*.key" -o -name env \) \
	\( -not -user root -o -perm /077 \))"');
good('a password in the configuration is for root',
	'test "$(stat -c "%U %a" /etc/nginx/xet/server.conf)" = "root 600"');
good('the store is for the workers',
	'test "$(stat -c "%U %a" /var/lib/xet)" = "www-data 750"');
good('xet-setup once more', 'xet-setup > /dev/null 2>&1');
is(good('what it left', $sums), $before, 'nothing was changed');

# xet-setup uses the database in the configuration, even if xet_postgres spans
# several lines.

good('another database', 'cd /etc/nginx/xet && cp server.conf kept &&
	sed -i "/^xet_postgres /s/ dbname/\n    port=1 dbname/" server.conf &&
	grep -qx "    port=1 dbname=xet user=xet\";" server.conf');
bad('another database', 1, qr/xet-setup: cannot migrate the database/,
	'xet-setup');
good('no database', 'cd /etc/nginx/xet && sed "/xet_postgres/,/;/d" kept \
	> server.conf');
bad('no database', 1, qr/server\.conf has no xet_postgres/, 'xet-setup');
good('the database', 'cd /etc/nginx/xet && mv kept server.conf');

like(good('what docs/install.md tries', typed('try')),
	qr/"hash":"\w{64}"/, 'a file is stored');

# --------------------------------------------------------------------------
# a file is stored and read

my $token = good('a token', 'xet token --key /etc/nginx/xet/token.key \
	--scope write --repo team --lifetime 1d');

chomp($token);

my $data = join('', map { pack('N', $_ * 2654435761 % 4294967296) }
	1 .. 300000);

$c->put('data', $data);

is(code("$api/v1/files", '-T', '/mnt/data'), 401, 'without a token');

my $hash = (good('PUT', "curl -sSf -T /mnt/data -H 'Authorization: Bearer "
	. "$token' $api/v1/files") =~ /"hash":"(\w{64})"/)[0] // 'none';

sub there {
	my ($name) = @_;

	is(code("$api/health"), 200, "$name: healthy");

	my ($status, $out) = $c->sh("curl -sSf -H 'Authorization: Bearer "
		. "$token' $api/v1/files/$hash | sha256sum");

	like($out, qr/^@{[ sha256_hex($data) ]}\b/, "$name: the file");
}

there('first');

# --------------------------------------------------------------------------
# the systemd units, without systemd: their syntax, and nginx with only the
# paths and capabilities that the units allow

sub unit {
	my ($file, $key) = @_;

	return map { s/^-//r } map { split(' ', $_) }
		slurp(root() . "/docker/systemd/$file") =~ /^$key=(.*)$/mg;
}

SKIP: {
	skip('no systemd-analyze', 3) unless -x '/usr/bin/systemd-analyze';

	my $units = tempdir('xet-units-XXXXXX', TMPDIR => 1, CLEANUP => 1);
	my $unit = "$units/nginx.service";

	make_path("$unit.d");
	spew($unit, slurp($c->path('/lib/systemd/system/nginx.service')));

	# Debian's unit is needed, because drop-ins have no ExecStart

	for my $file (qw/ xet.conf xet-hardening.conf /) {
		spew("$unit.d/$file", slurp(root() . "/docker/systemd/$file"));
	}

	local $ENV{SYSTEMD_UNIT_PATH} = "$units:";

	my ($status, $out) = run_command([ 'systemd-analyze', 'verify',
		$unit ]);

	is($status, 0, 'systemd: takes them') or diag($out);
	is(join("\n", grep { /xet/ } split(/\n/, $out)), '',
		'systemd: no word of them');

	($status, $out) = run_command([ 'systemd-analyze', 'security',
		'--no-pager', '--offline=true', '--threshold=35', $unit ]);
	is($status, 0, 'systemd: exposed to less than 3.5') or diag($out);
}

my @writable = grep { !m!^/run! } unit('xet-hardening.conf', 'ReadWritePaths');
my @caps = map { s/^CAP_(.*)/+\L$1/r }
	unit('xet-hardening.conf', 'CapabilityBoundingSet');

cmp_ok(scalar(@writable), '>', 2, 'hardened: paths');
cmp_ok(scalar(@caps), '>', 3, 'hardened: capabilities');
good('hardened: nginx', 'service nginx stop > /dev/null; for path in '
	. "@writable; do mkdir -p \$path; done; unshare --mount sh -euc '
	for path in @writable; do mount --bind \$path \$path; done
	mount -t tmpfs tmpfs /tmp
	mount -o remount,bind,ro /
	! touch /etc/nginx/x 2> /dev/null
	exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,"
	. join(',', @caps) . " nginx'");
there('hardened');
good('hardened: PUT', "head -c 100000 /dev/urandom | curl -sSf -T - -H "
	. "'Authorization: Bearer $token' $api/v1/files");
good('hardened: reload', 'nginx -s reload');
there('hardened, reloaded');
good('hardened: over', 'service nginx restart > /dev/null');

# --------------------------------------------------------------------------
# the packages are upgraded; the administrator has changed a configuration file

# Builds the next version of the packages, possibly with another configuration
# or schema.

sub next_version {
	my ($deb, $version, %change) = @_;

	my $dir = "$c->{debs}/next";

	remove_tree($dir);
	system('dpkg-deb', '-R', $deb, $dir) == 0 or die "dpkg-deb: $?\n";

	$change{'DEBIAN/control'} = sub { s/^Version: .*/Version: $version/m };

	for my $file (keys %change) {
		local $_ = slurp("$dir/$file");
		$change{$file}->();
		spew("$dir/$file", $_);
	}

	my $to = "$c->{debs}/next_${version}.deb";

	system("dpkg-deb --root-owner-group -b $dir $to > /dev/null") == 0
		or die "dpkg-deb: $?\n";

	return $to;
}

my $location = '/etc/nginx/xet/xet_location.conf';
my $limits = '/etc/nginx/xet/xet_limits.conf';

good('changed', "echo '# mine' >> $location");

my $master = master();

install('upgraded', @{ $debs[1] });
good('the revision', "dpkg-query -W -f '\${Version}' $names[0] |
	grep -q -- '-2~'");
there('upgraded');
good('upgraded: mine stays', "tail -n 1 $location | grep -qx '# mine'");
isnt(master(), $master, 'upgraded: another nginx, with the new module');
good('upgraded: the module that is gone is not in use', '! grep -l \
	"ngx_http_xet_module.so (deleted)" /proc/[0-9]*/maps');

$master = master();
$out = install('another schema', next_version($debs[1][0], "$version-3",
	"etc/nginx/xet/xet_location.conf" => sub { $_ .= "# theirs\n" },
	"etc/nginx/xet/xet_limits.conf" => sub { $_ .= "# theirs\n" },
	'usr/share/xet/module-schema' => sub { $_ = "999\n" }));

like($out, qr/needs database schema 999; .* needed \d+\.\s*$/m,
	'another schema: the message');
is(master(), $master, 'another schema: nginx keeps the old module');
there('another schema');
good('another schema: mine stays', "tail -n 1 $location | grep -qx '# mine'");
good('another schema: the other one is new',
	"tail -n 1 $limits | grep -qx '# theirs'");

# The next upgrade needs the same new schema, and the database still has the old
# schema.  Afterwards xet-setup starts nginx with the new module.

$out = install('once more', next_version($debs[1][0], "$version-4",
	'usr/share/xet/module-schema' => sub { $_ = "999\n" }));

like($out, qr/needs database schema 999;/, 'once more: the message');
is(master(), $master, 'once more: nginx keeps the old module');
there('once more');

good('xet-setup after it', 'xet-setup > /dev/null 2>&1');
isnt(master(), $master, 'xet-setup after it: another nginx');
good('xet-setup after it: with the new module', '! grep -l \
	"ngx_http_xet_module.so (deleted)" /proc/[0-9]*/maps');
there('xet-setup after it');

$master = master();

# nginx refuses the configuration: the running nginx is not replaced

good('a mistake', 'echo nonsense > /etc/nginx/conf.d/mistake.conf');
install('with a mistake', next_version($debs[1][0], "$version-5",
	'usr/share/xet/module-schema' => sub { $_ = "999\n" }));
is(master(), $master, 'with a mistake: nginx still runs');
there('with a mistake');
good('no mistake', 'rm /etc/nginx/conf.d/mistake.conf && nginx -t -q');

# --------------------------------------------------------------------------
# the packages are removed, installed again and purged

my $store = 'find /var/lib/xet -type f | sort | xargs sha256sum';
my $stored = good('the store', $store);

cmp_ok(scalar(() = $stored =~ m!/xorbs/!g), '>', 0, 'has a xorb');

my $listed = good('what the package has', "dpkg -L @names | sort -u");

# settings of the administrator, at the documented place, and a file that is not
# the package's to change

good('settings', "echo 'xet_gc on;' > /etc/nginx/xet/http.d/more.conf
	nginx -t -q");
good('a file elsewhere', 'echo "xet_gc_grace 60d;" > /etc/nginx/conf.d/a.conf');
like(good('removed', "apt-get remove -y @names 2>&1"),
	qr!use its directives: /etc/nginx/conf\.d/a\.conf\r?$!m,
	'removed: names what nginx refuses');
good('the file is deleted', 'rm /etc/nginx/conf.d/a.conf');
good('removed: nginx takes its configuration', 'nginx -t -q');
good('removed: nginx starts', 'service nginx restart > /dev/null');
is(code('http://127.0.0.1/'), 200, 'removed: other sites are served');
is(code("$api/health"), '000', 'removed: the server is gone');
is(good('removed: look', $store), $stored, 'removed: the store is there');

install('again', @{ $debs[1] });
good('again: nginx', 'nginx -t -q && service nginx restart > /dev/null');
there('again');

good('again: the settings', 'nginx -T 2> /dev/null | grep -q "^xet_gc on" &&
	rm /etc/nginx/xet/http.d/more.conf');

good('a user file', 'echo alice > /etc/nginx/xet/users');
good('purged', "apt-get purge -y @names 2>&1");
good('purged: nginx', 'nginx -t -q && service nginx restart > /dev/null');
is(good('purged: look', $store), $stored, 'purged: the store is there');
is(good('purged: database', 'su postgres -c "psql -X -At -d xet -c \
	\'SELECT count(*) FROM xet.files\'"'), "3\n",
	'purged: the database is there');

my $left = good('purged: files', "printf '%s' '$listed' |
	while read -r file; do [ ! -f \"\$file\" ] || echo \"\$file\"; done");

is($left, '', 'purged: no file of the packages');
is(good('purged: configuration', 'find /etc -path "*xet*" -o -lname "*xet*"'),
	"/etc/nginx/xet\n/etc/nginx/xet/users\n",
	'purged: what the administrator has made himself, and nothing else');

$c->stop();

done_testing();
