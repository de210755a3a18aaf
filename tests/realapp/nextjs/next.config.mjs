// Next.js as it is by default, but for one field: pages name a cache group, which /api/publish invalidates.
export default {
  async headers() {
    return [{ source: '/:page(news|time|classic|gallery)?', headers: [{ key: 'Cache-Groups', value: '"pages"' }] }];
  },
};
