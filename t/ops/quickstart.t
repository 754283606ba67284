#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# docs/quickstart.md as a new operator types it: all of its blocks, in one root
# shell in a small separate Debian, with the packages; the output must match the
# document.  Then the shell gets the blocks of docs/howto/team.md, which
# continues the quickstart, and the test runs hf with the team's tokens.
#
# The machine is one where docker/run.sh has run: nginx and PostgreSQL are
# installed, without services and without a cluster.  After the quickstart, the
# packages are removed, and nginx must still start.
#
# Differences from the document: "yes" answers the questions of apt; service(8)
# replaces systemctl, because there is no systemd; and Prometheus has shorter
# times, because t/ops/metrics_alerts.t checks the times of the alerts.
# XET_QUICKSTART_SLOW=1 keeps the original times.

use warnings;
use strict;
use utf8;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Chroot;
use Test::Xet::Documents;
use Test::Xet::Process qw/
	alive build_dir root run_command slurp spawn spew wait_for
/;

use Encode qw/ decode encode /;

for my $program (qw/ dpkg-buildpackage dh dh_nginx /) {
	plan(skip_all => "needs $program") unless -x "/usr/bin/$program";
}

my $c = Test::Xet::Chroot->new();

plan(skip_all => $c->{lacks}) if $c->{lacks};

# --------------------------------------------------------------------------
# the document: its blocks, and the lengths that it states

my $doc = decode('UTF-8', slurp(root() . '/docs/quickstart.md'));
my @blocks = blocks($doc);

sub blocks {
	my ($text) = @_;

	my (@found, $last);

	while ($text =~ /^(?:\#\#[ ](\d+)\.\ (.*)
		|<!--[ ](.+)[ ]-->\n```\w+\n((?:.*\n)*?)```)$/mxg)
	{
		if (defined $1) {
			push @found, { step => "$1. $2" };

		} elsif ($3 eq 'quickstart') {
			push @found, { text => $4 };

		} elsif ($3 eq 'output' && $last eq 'quickstart') {
			$found[-1]{output} = $4;
		}

		$last = $3 // '';
	}

	return @found;
}

my $typed = join('', map { $_->{text} // () } @blocks);
my $words = () = $typed =~ /\S+/g;
my $minutes = sprintf('%.1f', length($typed) / 200);

is(scalar(() = $doc =~ /^```sh$/mg), scalar(grep { $_->{text} } @blocks),
	'all that is to be typed is tried');
my $said = join(' ', length($typed), 'characters in', $words,
	'words. At 200 characters a minute that is', $minutes, 'minutes');

like($doc =~ s/\s+/ /gr, qr/\Q are $said,/, 'what is to be typed');
cmp_ok($minutes, '<', 15, 'minutes of typing');

# --------------------------------------------------------------------------
# the packages, and their dependencies

my ($status, $out, @debs) = $c->packages(1);

is($status, 0, 'packages') or BAIL_OUT($out);

my ($wanted) = $typed =~ /^apt-get install (nginx .*)$/m;
my @needed = ((grep { $_ ne 'prometheus' } split(' ', $wanted)),
	grep { /^(?:lib|node-)/ } map { /^([\w.+-]+)/ ? $1 : () }
	split(/, */, join(', ', map { `dpkg-deb -f $_ Depends` } @debs)));

my $why = $c->fetch(@needed);

is($why, undef, 'what they need was fetched') or BAIL_OUT($why);

my $prometheus = $c->fetch(@needed, 'prometheus');

diag("WITHOUT PROMETHEUS, no alert is tried: $prometheus") if $prometheus;

$c->start();
$c->put('yes', qq(APT::Get::Assume-Yes "true";\n));
$c->run([ 'cp', '/mnt/yes', '/etc/apt/apt.conf.d/' ]);
$c->run([ 'mkdir', '/root/packages' ]);

for my $deb (@debs) {
	my ($file) = $deb =~ m!([^/]+)$!;

	$c->put($file, slurp($deb));
	$c->run([ 'mv', "/mnt/$file", '/root/packages/' ]);
}

# --------------------------------------------------------------------------
# the operator's shell: it gets one block at a time, and records commands that
# fail

# what docker/setup.sh leaves

{
	my ($status, $out) = $c->sh(<< 'END', timeout => 600);
cp -p /usr/sbin/policy-rc.d /tmp/allowed
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' \
    > /etc/postgresql-common/createcluster.d/setup.conf
apt-get install -y nginx postgresql
rm /etc/postgresql-common/createcluster.d/setup.conf
cp -p /tmp/allowed /usr/sbin/policy-rc.d
update-rc.d nginx disable
update-rc.d postgresql disable
END

	is($status, 0, 'after docker/run.sh') or BAIL_OUT($out);
	is(($c->run([ 'pg_lsclusters', '-h' ]))[1], '', 'no cluster');
}

$c->put('shell', << 'END');
workers() {
    cat /proc/"$(cat /run/nginx.pid)"/task/*/children || :
}

# A reload returns immediately, and people are slower than this shell: it waits
# for new workers, and until old workers accept no more connections.

systemctl() {
    _old=" $(workers 2> /dev/null) "
    service "$2" "$1" || return
    [ "$2 $1" = 'nginx reload' ] || return 0

    for _i in $(seq 600); do
        _left=1

        for _pid in $(workers 2> /dev/null); do
            case $_old in *" $_pid "*) ;; *) _left= ; esac
        done

        for _pid in $_old; do
            if grep -qsz '^nginx: worker process$' "/proc/$_pid/cmdline"; then
                _left=1
            fi
        done

        [ -n "$_left" ] || return 0
        sleep 0.1
    done
}

set -E -o pipefail
cd /root/packages
umask 022
_n=0

while :; do
    _n=$((_n + 1))
    while [ ! -e "/mnt/type.$_n" ]; do sleep 0.1; done
    trap 'echo "$BASH_COMMAND" >> "/mnt/failed.$_n"' ERR
    . "/mnt/text.$_n" > "/mnt/out.$_n" 2>&1 < /dev/null
    trap - ERR
    : > "/mnt/done.$_n"
done
END

my $shell = spawn([ $c->inside(), 'bash', '/mnt/shell' ],
	output => "$c->{dir}/shell");
my $n = 0;

sub type {
	my ($text) = @_;

	$n++;
	$c->put("text.$n", encode('UTF-8', $text));
	$c->put("type.$n", '');

	wait_for(600, sub { -e "$c->{dir}/out/done.$n" || !alive($shell) });

	return (slurp("$c->{dir}/out/failed.$n", 1) // '',
		decode('UTF-8', slurp("$c->{dir}/out/out.$n", 1) // ''),
		-e "$c->{dir}/out/done.$n");
}

# Prometheus scrapes every two seconds, and an alert fires after ten seconds.

sub hurried {
	my ($text) = @_;

	my $alerts = '/usr/share/xet/conf/xet_alerts.yml';

	$text =~ s/(scrape|evaluation)(_interval): 15s/$1$2: 2s/g;
	$text =~ s/^(?=promtool check)/sed -i 's,for: 2m,for: 10s,' $alerts\n/m;

	return $text;
}

# The documented cron job runs in cron's environment, and only root can read its
# backup.

sub cron {
	my ($status, $out) = $c->sh('run-parts --regex "^xet-" /etc/cron.daily',
		env => { PATH => '/usr/bin:/bin', SHELL => '/bin/sh' });

	is($status, 0, 'the backup by cron');
	like($out, qr/: 2 files, .* 0 new, 0 removed, 0 lost\n\z/,
		'the backup by cron: has all');

	($status, $out) =
		$c->sh('find /var/backups/xet -maxdepth 0 -perm /027');
	is($out, '', 'only root can read the backup');
}

# Debian has no package of hf_xet, the most common client.  The test's own
# hf_xet runs outside of the small Debian, but with its network, host names and
# certificates.

sub hf_xet {
	my $python = build_dir() . '/venv/bin/python';

	SKIP: {
		my ($lacks) = -x $python
			? run_command([ $python, '-c', 'import hf_xet' ]) : 1;

		skip('no hf_xet', 1) if $lacks;

		for my $file (qw! /etc/hosts /etc/ssl/certs/ca-certificates.crt
			/root/xet/write /usr/sbin/nginx !)
		{
			my ($name) = $file =~ m!([^/]+)$!;

			$c->run([ 'cp', $file, "/mnt/hf.$name" ]);
		}

		my $dir = "$c->{dir}/out";
		my $token = slurp("$dir/hf.write") =~ s/\s//gr;

		my ($status, $out) = run_command([ 'nsenter', '-t', $c->{init},
			'-n', @{ $c->{unshare} }, 'sh', '-ec',
			'mount --bind "$1/hf.hosts" /etc/hosts; shift; '
			. 'exec "$@"',
			'sh', $dir, $python, root() . '/t/tools/roundtrip.py',
			'https://xet.example.com/api', "$dir/hf.nginx",
			$token ], timeout => 120, env => { SSL_CERT_FILE =>
			"$dir/hf.ca-certificates.crt" });

		is($status, 0, 'hf_xet: there and back') or diag($out);
	}
}

# Runs hf with Hub names: alice and ci may upload, eve may not.

sub hf {
	my $hf = build_dir() . '/venv/bin/hf';

	SKIP: {
		skip('no hf', 6) unless -x $hf;

		my $dir = "$c->{dir}/out";

		for my $file (qw! /etc/hosts /etc/ssl/certs/ca-certificates.crt
			/root/team/alice /root/team/ci /root/team/eve !)
		{
			my ($name) = $file =~ m!([^/]+)$!;

			$c->run([ 'cp', $file, "/mnt/hf.$name" ]);
		}

		mkdir("$dir/hf.model");
		spew("$dir/hf.model/weights", 'w' x 500_000);

		for my $case ([ 'alice', 0, 'upload', 'team/model' ],
			[ 'eve', 0, 'download', 'team/model' ],
			[ 'eve', 1, 'upload', 'team/model' ],
			[ 'ci', 0, 'upload', 'team/plans' ],
			[ 'ci', 0, 'download', 'team/plans' ],
			[ 'ci', 1, 'upload', 'team/model' ])
		{
			my ($who, $code, $verb, $repo) = @$case;

			my ($status, $out) = run_command([ 'nsenter', '-t',
				$c->{init}, '-n', @{ $c->{unshare} }, 'sh',
				'-ec', 'mount --bind "$1/hf.hosts" /etc/hosts; '
				. 'hf=$2; shift 2; '
				. '"$hf" auth login --token "$HF_TOKEN"; '
				. 'exec "$hf" "$@"', 'sh', $dir, $hf, $verb,
				$repo, $verb eq 'upload' ? "$dir/hf.model"
				: ('--local-dir', "$dir/hf.$who.got") ],
				timeout => 120, env => {
				HF_ENDPOINT => 'https://xet.example.com',
				HF_HOME => "$dir/hf.home.$who",
				HF_HUB_DISABLE_UPDATE_CHECK => 1,
				HF_TOKEN => slurp("$dir/hf.$who") =~ s/\s//gr,
				SSL_CERT_FILE =>
					"$dir/hf.ca-certificates.crt" });

			is(!!$status, !!$code, "hf: $who: $verb $repo")
				or diag($out);
		}
	}
}

# --------------------------------------------------------------------------

my $step = '';

push @blocks, { step => 'a team' },
	blocks(decode('UTF-8', slurp(root() . '/docs/howto/team.md')));

for my $block (@blocks) {
	if ($block->{step}) {
		hf_xet() if $step =~ /repo$/;
		cron() if $step =~ /backup/;
		$step = $block->{step};
		next;
	}

	my $text = $block->{text};
	my ($first) = $text =~ /^(.{1,50})/;
	my $name = "$step: $first";

	SKIP: {
		if ($prometheus) {
			$text =~ s/(apt-get install .*) prometheus/$1/;
			skip('no Prometheus', 2) if $step =~ /alert/;
		}

		$text = hurried($text) unless $ENV{XET_QUICKSTART_SLOW};

		my $start = time();
		my ($failed, $out, $done) = type($text);

		ok($done && $failed eq '', $name)
			or die("failed: $failed\n$out");
		note(sprintf('%d s', time() - $start), "\n$out");

	like($out, expected($block->{output}), "$name: prints")
			if $block->{output};
	}
}

hf();

for my $service (qw/ nginx postgresql /) {
	my ($status) = $c->sh("ls /etc/rc2.d/S*$service");
	is($status, 0, "$service starts at boot");
}

($status, $out) = $c->sh('apt-get remove -y libnginx-mod-http-xet xet-tools;
	nginx -t -q; service nginx restart', timeout => 300);
is($status, 0, 'removed: nginx starts') or diag($out);
unlike($out, qr/use its directives/, 'removed: no file has a directive');

$c->stop();

done_testing();
